import Grants
import TokenEndpoint

extension SignInStep {
    static let link = SignInStep(LinkStep())
}

/// A link that was sent: opened in this browser, or elsewhere with the number that this page shows.
struct LinkStep: PageStep {
    let name = "link"
    let number: UInt8 = 4

    func move(
        _ action: SignInAction, _ form: FormParameters, _ transaction: inout SignInTransaction, _ rules: SignInRules
    ) throws(InvalidForm) -> SignInMove {
        switch action {
        case .continue: return .proveLink()
        case .resend: return transaction.send(.sendLink, rules)
        case .code where rules.sendsCodes(to: transaction.address):
            return transaction.send(.sendCode(resends: false), rules)
        case .otherAddress where rules.fixedAddress == nil: return transaction.another()
        default: throw InvalidForm()
        }
    }

    func title(_ transaction: SignInTransaction, _ rules: SignInRules) -> String {
        switch transaction.link {
        case .denied: "link-denied-title"
        case .expired: "link-expired-title"
        case .pending, .confirmed, nil: transaction.address.isPhone ? "link-title-phone" : "link-title"
        }
    }

    func values(_ transaction: inout SignInTransaction, _ scene: PageScene) async throws -> PageValues {
        let rules = scene.rules
        let polling = scene.handle(of: transaction).flatMap { scene.parts.sentLink.polling(ofHandle: $0.id) }
        let mayResend = transaction.messagesLeft(rules) > 0
        var values: PageValues = [
            "number": .value(polling?.matchNumber ?? ""), "interval": .value(String(polling?.interval ?? 5)),
            "codes": .flag(mayResend && rules.sendsCodes(to: transaction.address)),
            "fixed": .flag(rules.fixedAddress != nil), "resends": .flag(mayResend),
        ]
        values.add(reportOf: transaction, rules)
        let isOver = transaction.link == .denied || transaction.link == .expired
        values.set("over", .flag(isOver))
        if !isOver { values.set("script", .value(scene.assets.name(of: .wait))) }
        values.set("submits", .flag(scene.context.purpose.endsInBrowser))
        switch transaction.link {
        case .pending: values.set("state", .text("link-pending"))
        case .denied: values.set("state", .text("link-denied"))
        case .expired: values.set("state", .text("link-expired"))
        case .confirmed, nil: break
        }
        return values
    }
}
