import Grants
import Persistence
import Texts
import TokenEndpoint

/// Proves one more address of the signed-in user, because the client asked for it by `acr_values`. A new address is
/// added to the account.
struct StepUpFlow: PageFlow {
    let parts: PageParts
    let client: Client

    /// How long ago the sign-in may be, in seconds; else the user signs in first, as for every change of an account.
    static let maximumAge = 600.0

    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        let flow = SignInFlow(parts: parts)
        guard let cookie = context.cookies.session ?? BrowserCookie(transaction.ownSession),
            let live = try await flow.signedIn(transaction, context), live.now - live.authTime <= Self.maximumAge
        else { return again(transaction, context) }
        if let outcome = try await common(move, transaction, context) { return outcome }
        switch move {
        case .sendCode(let resends, let channel, _, _):
            do {
                return .next(
                    try await message(by: channel, to: .code, transaction, context) { address in
                        try await begin(address, resends: resends, transaction, context, live)
                    }, nil)
            } catch let failure as Identifiers.Failure {
                var transaction = transaction
                transaction.fault = failure == .sendLimit ? .sendLimit : .addressRefused
                return .next(transaction, nil)
            }
        case .proveCode(let code, _): return try await prove(code, transaction, context, cookie, live)
        default: throw PageError(.invalidRequest)
        }
    }

    private func begin(
        _ address: MessageAddress, resends: Bool, _ transaction: SignInTransaction, _ context: SignInContext,
        _ live: BrowserSessionStore.Live
    ) async throws -> SentMessage {
        // Not counted under `registrations`, so that users behind one address can step up; the account's limit counts.
        let receipt = try await parts.identifiers.begin(
            address, authSession: resends ? transaction.handle : nil,
            locale: context.language.tag, pageOrigin: context.origin, realm: context.realm, user: live.user,
            client: client, source: context.exchange.source, mayBeUnknown: false)
        return SentMessage(handle: receipt.authSession, left: receipt.sendsLeft)
    }

    private func prove(
        _ code: TypedCode, _ transaction: SignInTransaction, _ context: SignInContext, _ cookie: BrowserCookie,
        _ live: BrowserSessionStore.Live
    ) async throws -> FlowOutcome {
        var transaction = transaction
        let (fresh, issued) = (BrowserCookie(), AuthorizationCode())
        guard var request = context.purpose.request(issuing: issued) else { throw PageError(.invalidRequest) }
        request.isProved = transaction.hasProved(cookie)
        let outcome: PageOutcome
        do {
            outcome = try await parts.identifiers.prove(
                authSession: transaction.handle, code: code,
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
        let answer = try await context.purpose.answer(outcome, issued)
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

extension SignInTransaction {
    /// The page that asks for one more address of the signed-in user.
    mutating func stepUp() {
        step = .address
        facts.insert(.stepsUp)
        (address, handle, sends, sendsLeft, wrongCodes) = ("", "", 0, 0, 0)
    }
}

extension SignInContext {
    /// The addresses by which the purpose can be met; `nil` when one more address would not do.
    var stepUpAddresses: TypedAddresses? {
        guard let wanted = purpose.provableAddresses else { return nil }
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
