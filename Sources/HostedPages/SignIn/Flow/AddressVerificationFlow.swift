import Grants
import Persistence
import Texts
import TokenEndpoint

/// Does what the forms of a proof ask for: the steps `address`, `code` and `continue-as`, without an account.
struct AddressVerificationFlow: PageFlow {
    let parts: PageParts
    let request: AuthorizationRequest

    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        // Steps 6 to 14 of the request were judged with the acr_values it has.
        guard let acr = request.addressACR else { return .end(try await context.purpose.refuse(.unmet), nil) }
        if let outcome = try await common(move, transaction, context) { return outcome }
        switch move {
        case .sendCode(let resends, let channel, _, _):
            return .next(try await send(channel, resends: resends, transaction, context), nil)
        case .proveCode(let code, _):
            do {
                let proved = try await parts.addressVerifications.prove(
                    code: code, authSession: transaction.handle, for: request, acr: acr,
                    in: try context.redemption)
                return try await answer(proved, transaction, context)
            } catch let error as TokenError where error.code == .invalidGrant {
                var transaction = transaction
                transaction.countWrongCode(context.rules)
                return .next(transaction, nil)
            }
        case .goOn:
            guard let browser = browser(transaction, context),
                let address = try? context.rules.addresses.read(transaction.address)
            else { return again(transaction, context) }
            let shared = try await parts.addressVerifications.share(
                address, for: request, acr: acr, browser: browser, in: try context.redemption)
            return try await answer(shared, transaction, context)
        default: throw PageError(.invalidRequest)
        }
    }

    private func send(
        _ channel: Channel?, resends: Bool, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInTransaction {
        do {
            return try await message(by: channel, to: .code, transaction, context) { address in
                let begun = try await parts.addressVerifications.begin(
                    address, for: request, authSession: resends ? transaction.handle : nil,
                    browser: resends ? nil : browser(transaction, context), locale: context.language.tag,
                    pageOrigin: context.origin, realm: context.realm, source: context.exchange.source)
                switch begun {
                case .known: throw Known()
                case .sent(let handle, let isNew):
                    // As many as before may still go out, where no message did.
                    return SentMessage(
                        handle: handle, left: isNew ? 0 : Int(transaction.sendsLeft), isNew: isNew)
                }
            }
        } catch is Known {
            var transaction = transaction
            transaction.step = .continueAs
            return transaction
        }
    }

    /// The browser's user has proven the address lately: nothing is sent.
    private struct Known: Error {}

    /// The browser whose user may share an address, unless the person or the client wants a code.
    private func browser(_ transaction: SignInTransaction, _ context: SignInContext) -> AddressVerifications.Browser? {
        guard context.realm.hosted.singleSignOnIdle > 0, !transaction.facts.contains(.wantsCode),
            !context.purpose.wantsLogin, let cookie = context.cookies.session
        else { return nil }
        return AddressVerifications.Browser(cookie: cookie, host: context.exchange.host)
    }

    private func answer(
        _ proved: AddressVerifications.Proved, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome {
        switch try await context.purpose.answer(proved.outcome, proved.code) {
        case .end(let end): return .end(end, nil, from: context.begun(from: transaction, at: parts.clock()))
        case .due(.used): throw AuthorizationRefusal.page(.invalidRequestURI)
        case .due: return again(transaction, context)
        }
    }
}
