import Grants
import Persistence
import Texts
import TokenEndpoint

/// Proves one more address of the signed-in user, because the client asked for it by `acr_values`. A new address is
/// added to the account.
struct StepUpFlow: Sendable {
    let parts: PageParts

    /// How long ago the sign-in may be, in seconds; else the user signs in first, as for every change of an account.
    static let maximumAge = 600.0

    /// - Throws: as ``SignInFlow/perform(_:_:_:)``.
    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInFlow.Outcome {
        let flow = SignInFlow(parts: parts)
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession),
            let live = try await flow.signedIn(transaction, context), live.now - live.authTime <= Self.maximumAge
        else { return .next(context.begun(from: transaction, at: parts.clock()), nil) }
        var transaction = transaction
        switch move {
        case .show: return .next(transaction, nil)
        case .restart: return .next(context.begun(from: transaction, at: parts.clock()), nil)
        case .deny:
            let response = try await parts.authorizations.refuse(
                context.request, .accessDenied, "The user refused.", realm: context.realm)
            return .response(response, nil)
        case .sendCode(let resends, let channel, _, _):
            guard let address = transaction.messageAddress(context, channel, parts.keyring) else {
                throw PageError(.invalidRequest)
            }
            do {
                let receipt = try await begin(address, resends: resends, transaction, context, live)
                let isSame =
                    flow.handle(receipt.authSession, context) == flow.handle(transaction.handle, context)
                transaction.countSend(left: receipt.sendsLeft, sameHandle: isSame, at: parts.clock())
                if !isSame { transaction.wrongCodes = 0 }
                transaction.handle = receipt.authSession
                transaction.arrive(at: .code)
            } catch let failure as Identifiers.Failure {
                transaction.fault = failure == .sendLimit ? .sendLimit : .addressRefused
            }
            return .next(transaction, nil)
        case .proveCode(let code, _): return try await prove(code, transaction, context, cookie, live)
        default: throw PageError(.invalidRequest)
        }
    }

    private func begin(
        _ address: MessageAddress, resends: Bool, _ transaction: SignInTransaction, _ context: SignInContext,
        _ live: BrowserSessionStore.Live
    ) async throws -> Identifiers.Receipt {
        // Not counted under `registrations`, so that users behind one address can step up; the account's limit counts.
        try await parts.identifiers.begin(
            address, authSession: resends ? transaction.handle : nil,
            locale: context.language.tag, pageOrigin: context.origin, realm: context.realm, user: live.user,
            client: context.request.client, source: context.exchange.source, mayBeUnknown: false)
    }

    private func prove(
        _ code: String, _ transaction: SignInTransaction, _ context: SignInContext, _ cookie: BrowserCookie,
        _ live: BrowserSessionStore.Live
    ) async throws -> SignInFlow.Outcome {
        var transaction = transaction
        let (fresh, issued) = (BrowserCookie(), AuthorizationCode())
        var request = context.request.codeRequest
        request.codeHash = issued.hash
        request.isProved = transaction.hasProved(cookie)
        let outcome: PageOutcome
        do {
            outcome = try await parts.identifiers.prove(
                authSession: transaction.handle, code: TypedCode(code),
                in: Identifiers.Browser(
                    cookieHash: cookie.hash, newCookieHash: fresh.hash, host: context.exchange.host),
                answering: request, realm: context.realm, source: context.exchange.source)
        } catch let failure as Identifiers.Failure {
            if failure == .code {
                transaction.countWrongCode(context.rules)
            } else {
                (transaction.step, transaction.fault) = (.address, .addressRefused)
            }
            return .next(transaction, nil)
        }
        let answer = try await parts.authorizations.answer(
            context.request, outcome, issued, nil, realm: context.realm)
        transaction.facts.remove(.stepsUp)
        transaction.facts.insert(.proved)
        transaction.session = Array(fresh.hash.prefix(8))
        transaction.handle = ""
        let keeps = context.realm.hosted.singleSignOnIdle > 0
        if !keeps { transaction.ownSession = fresh.text }
        return try await SignInFlow(parts: parts).next(
            answer, transaction, context,
            cookie: keeps ? SessionCookie(fresh, of: context.realm, until: live.expiresAt - live.now) : nil,
            hasProved: true)
    }
}

extension SignInFlow {
    /// What is done by another flow: a proof without an account, or one more address of the signed-in user.
    func otherFlow(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> Outcome? {
        if context.request.provesAddressOnly {
            return try await AddressVerificationFlow(parts: parts).perform(move, transaction, context)
        }
        guard transaction.facts.contains(.stepsUp) else { return nil }
        return try await StepUpFlow(parts: parts).perform(move, transaction, context)
    }
}

extension SignInTransaction {
    /// The page that asks for one more address of the signed-in user.
    mutating func stepUp() {
        step = .address
        facts.insert(.stepsUp)
        (address, handle, sends, sendsLeft, wrongCodes) = ("", "", 0, 0, 0)
    }
}

extension SignInContext {
    /// The addresses by which the request can be met; `nil` when one more address would not do.
    var stepUpAddresses: TypedAddresses? {
        guard let wanted = request.provableAddresses else { return nil }
        let addresses = TypedAddresses(realm, takesMail: wanted.mail, takesPhones: wanted.phone)
        return addresses.takesMail || addresses.takesPhones ? addresses : nil
    }

    /// Whether the signed-in user may prove one more address now; else a sign-in comes first.
    func mayStepUp(_ live: BrowserSessionStore.Live?) -> Bool {
        guard let live, stepUpAddresses != nil else { return false }
        return live.now - live.authTime <= StepUpFlow.maximumAge
    }

    /// The same under the rules of a step-up.
    func steppingUp(_ transaction: SignInTransaction) -> SignInContext {
        guard transaction.facts.contains(.stepsUp), let addresses = stepUpAddresses else { return self }
        var context = self
        context.rules = SignInRules(methods: [.emailCode], addresses: addresses, tries: rules.tries)
        return context
    }
}
