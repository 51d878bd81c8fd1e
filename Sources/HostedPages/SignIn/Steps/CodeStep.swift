import Grants
import Persistence
import TokenEndpoint

extension SignInStep {
    static let code = SignInStep(CodeStep())
}

/// The code that was sent.
struct CodeStep: PageStep {
    let name = "code"
    let number: UInt8 = 3
    let fields: Set<String> = ["code"]
    let mainField: FormField? = .code

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        // No code opens an account any more, and none is sent.
        if transaction.facts.contains(.registers), rules.registration == .off, action != .otherAddress {
            return try transaction.closed()
        }
        switch action {
        case .continue:
            guard Int(transaction.wrongCodes) < rules.tries else { return transaction.faulted(.noTries) }
            guard let code = form["code"].map(TypedCode.init), !code.text.isEmpty else {
                return transaction.faulted(.fieldMissing, at: .code)
            }
            return .proveCode(code)
        case .resend: return transaction.send(.sendCode(resends: true), rules)
        case .channel:
            guard transaction.address.isPhone, let channel = Channel(rawValue: form["action"] ?? ""),
                rules.addresses.channels.contains(channel)
            else { throw InvalidForm() }
            return transaction.send(.sendCode(resends: true, channel: channel), rules)
        case .link where offersLink(transaction, rules): return transaction.send(.sendLink, rules)
        case .otherAddress where rules.fixedAddress == nil: return transaction.another()
        default: throw InvalidForm()
        }
    }

    /// Whether a link may be sent in place of a code: to sign in.
    private func offersLink(_ transaction: SignInTransaction, _ rules: SignInRules) -> Bool {
        rules.sendsLinks(to: transaction.address) && !transaction.facts.contains(.registers)
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String { "code-title" }

    func wording(_ transaction: SignInTransaction, _ rules: SignInRules) -> String? {
        transaction.fault == nil && transaction.hasNoTries(rules) ? "fault-no_tries" : nil
    }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        let rules = scene.rules
        let mayResend = transaction.messagesLeft(rules) > 0
        var values: PageValues = [
            "tries": .flag(transaction.wrongCodes > 0), "dead": .flag(transaction.hasNoTries(rules)),
            "resends": .flag(mayResend),
        ]
        values.add(reportOf: transaction, rules)
        values.set("links", .flag(mayResend && offersLink(transaction, rules)))
        if transaction.address.isPhone {
            values.set("isPhone", .flag(true))
            if mayResend { values.set("channels", .rows(channels(transaction, scene))) }
        }
        values.set("fixed", .flag(rules.fixedAddress != nil))
        return values
    }

    /// The other ways by which a code can reach a phone.
    private func channels(_ transaction: SignInTransaction, _ scene: PageScene) -> [PageValues] {
        let last = scene.handle(of: transaction)?.channel
        return scene.rules.addresses.channels.filter { $0 != last }.map {
            ["action": .value($0.rawValue), "text": .text("code-\($0.rawValue)")]
        }
    }
}

extension SignInTransaction {
    /// Whether no code of the present handle is compared any more.
    func hasNoTries(_ rules: SignInRules) -> Bool { step == .code && Int(wrongCodes) >= rules.tries }
}
