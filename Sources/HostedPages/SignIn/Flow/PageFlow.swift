import Grants
import Persistence
import TokenEndpoint

/// Does what the forms of a sign-in ask for. Which flow it is, its purpose says (``SignInPurpose/flow(of:_:)``).
protocol PageFlow: Sendable {
    var parts: PageParts { get }

    /// Does what a form asks for.
    /// - Throws: `TokenError` for limits and faults, `SignInRequests.SendLimit`, `AuthorizationRefusal`, ``PageError``,
    ///   or what the database threw. Then nothing was done.
    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome
}

/// What a form led to.
enum FlowOutcome: Sendable {
    /// The next page, and the session cookie that the browser gets.
    case next(SignInTransaction, SessionCookie?)
    /// The end, the session cookie, and the page to go back to once a code that it holds was redeemed.
    case end(SignInEnd, SessionCookie?, from: SignInTransaction? = nil)
}

/// A message that was asked for.
struct SentMessage: Sendable {
    /// What its code or link is presented with.
    let handle: String
    /// Messages that the handle may still cause.
    let left: Int
    /// Whether a message goes out; `nil`: what is left tells.
    var isNew: Bool?
}

extension PageFlow {
    /// Does a move that is the same in every flow. - Returns: `nil` for any other.
    func common(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> FlowOutcome? {
        switch move {
        case .show: return .next(transaction, nil)
        case .restart: return again(transaction, context)
        case .deny: return .end(try await context.purpose.refuse(.denied), nil)
        case .giveUp(let former):
            if let handle = opened(former, context)?.id {
                try await parts.pageStates.giveUp(realm: context.realm.id, handle: handle)
            }
            return .next(transaction, nil)
        default: return nil
        }
    }

    /// The same sign-in from its beginning.
    func again(_ transaction: SignInTransaction, _ context: SignInContext) -> FlowOutcome {
        .next(context.begun(from: transaction, at: parts.clock()), nil)
    }

    /// Asks for a message to the address of a transaction, counts it, and goes to the step where it is answered.
    /// - Parameter send: asks for it.
    func message(
        by channel: Channel?, to step: SignInStep, _ transaction: SignInTransaction, _ context: SignInContext,
        _ send: (MessageAddress) async throws -> SentMessage
    ) async throws -> SignInTransaction {
        var transaction = transaction
        guard let address = transaction.messageAddress(context, channel, parts.keyring) else {
            // The realm takes it no more since it was typed.
            transaction.fault = .addressRefused
            return transaction
        }
        let sent = try await send(address)
        let isSame = opened(sent.handle, context)?.id == opened(transaction.handle, context)?.id
        transaction.countSend(left: sent.left, sameHandle: sent.isNew.map { !$0 } ?? isSame, at: parts.clock())
        if !isSame { transaction.wrongCodes = 0 }
        transaction.forgetProof()
        transaction.handle = sent.handle
        transaction.arrive(at: step)
        return transaction
    }

    func opened(_ handle: String, _ context: SignInContext) -> AuthSessionHandle? {
        AuthSessionHandle(handle, realm: context.realm.id, keyring: parts.keyring)
    }
}

extension SignInContext {
    /// Does what a form asks for, by the flow of the transaction.
    /// - Throws: as ``PageFlow/perform(_:_:_:)``.
    func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ parts: PageParts
    ) async throws -> FlowOutcome {
        if move.isUncounted { try parts.countLookUp(exchange) }
        return try await purpose.flow(of: transaction, parts).perform(move, transaction, self)
    }
}
