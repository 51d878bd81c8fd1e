import Grants
import Persistence
import Texts
import TokenEndpoint

/// Does what the forms of a proof ask for: the steps `address`, `code` and `continue-as`, without an account.
struct AddressVerificationFlow: Sendable {
    let parts: PageParts

    /// - Throws: as ``SignInFlow/perform(_:_:_:)``.
    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInFlow.Outcome {
        // Steps 6 to 14 of the request were judged with the acr_values it has.
        guard let acr = context.request.addressACR else {
            return .response(
                try await parts.authorizations.refuse(
                    context.request, .unmetAuthenticationRequirements, "The sign-in does not meet acr_values.",
                    realm: context.realm), nil)
        }
        var transaction = transaction
        switch move {
        case .show: return .next(transaction, nil)
        case .restart: return .next(context.begun(from: transaction, at: parts.clock()), nil)
        case .deny:
            let response = try await parts.authorizations.refuse(
                context.request, .accessDenied, "The user refused.", realm: context.realm)
            return .response(response, nil)
        case .sendCode(let resends, let channel, _, _):
            return .next(try await send(channel, resends: resends, transaction, context), nil)
        case .proveCode(let code, _):
            do {
                let proved = try await parts.addressVerifications.prove(
                    code: TypedCode(code), authSession: transaction.handle, for: context.request, acr: acr,
                    in: context.redemption)
                return try await answer(proved, transaction, context)
            } catch let error as TokenError where error.code == .invalidGrant {
                transaction.countWrongCode(context.rules)
                return .next(transaction, nil)
            }
        case .goOn:
            guard let browser = browser(transaction, context),
                let address = try? context.rules.addresses.read(transaction.address)
            else { return .next(context.begun(from: transaction, at: parts.clock()), nil) }
            let shared = try await parts.addressVerifications.share(
                address, for: context.request, acr: acr, browser: browser, in: context.redemption)
            return try await answer(shared, transaction, context)
        default: throw PageError(.invalidRequest)
        }
    }

    private func send(
        _ channel: Channel?, resends: Bool, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInTransaction {
        var transaction = transaction
        guard let address = transaction.messageAddress(context, channel, parts.keyring) else { return transaction }
        let begun = try await parts.addressVerifications.begin(
            address, for: context.request, authSession: resends ? transaction.handle : nil,
            browser: resends ? nil : browser(transaction, context),
            locale: context.language.tag,
            pageOrigin: context.origin, realm: context.realm, source: context.exchange.source)
        switch begun {
        case .known: transaction.step = .continueAs
        case .sent(let handle, let isNew):
            // As many as before may still go out, where no message did.
            transaction.countSend(
                left: isNew ? 0 : Int(transaction.sendsLeft), sameHandle: !isNew, at: parts.clock())
            let flow = SignInFlow(parts: parts)
            if flow.handle(handle, context) != flow.handle(transaction.handle, context) { transaction.wrongCodes = 0 }
            transaction.handle = handle
            transaction.arrive(at: .code)
        }
        return transaction
    }

    /// The browser whose user may share an address, unless the person or the client wants a code.
    private func browser(_ transaction: SignInTransaction, _ context: SignInContext) -> AddressVerifications.Browser? {
        guard context.realm.hosted.singleSignOnIdle > 0, !transaction.facts.contains(.wantsCode),
            !context.request.prompts.contains(.login), let cookie = context.cookies.session
        else { return nil }
        return AddressVerifications.Browser(cookie: cookie, host: context.exchange.host)
    }

    private func answer(
        _ proved: AddressVerifications.Proved, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SignInFlow.Outcome {
        switch try await parts.authorizations.answer(
            context.request, proved.outcome, proved.code, nil, realm: context.realm)
        {
        case .response(let response):
            return .response(response, nil, from: context.begun(from: transaction, at: parts.clock()))
        case .page: return .next(context.begun(from: transaction, at: parts.clock()), nil)
        }
    }
}
