/// Magic links: the page, confirmation, redemption and polling. Requests for links are in ``SignInRequestStore``.
public struct MagicLinkStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What the page says about a link. Changes nothing but the limits.
    public enum Page: Sendable {
        /// It can be confirmed; where its request came from.
        case open(RequestOrigin)
        /// It can not, as an answer to the page would tell.
        case ended(Confirmation)
    }

    /// Looks a link up for its page.
    public func page(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], permits: PermitRequest
    ) async throws(StoreError) -> (Page?, PermitVerdict) {
        try await database.one(
            Self.calls.page, ["realm": realm, "user": user, "token_hash": tokenHash] + permits.arguments)
    }

    /// The outcome of an answer to the page.
    public enum Confirmation: String, Sendable, CaseIterable {
        /// The right number: the device that asked may sign in.
        case confirmed
        /// The wrong number, or "not me": the link is dead.
        case denied
        /// The link was confirmed or denied before.
        case answered
        /// The link was opened in the app.
        case redeemed
        /// Another link of the account was used, or all access to it was ended.
        case superseded
        case expired
        case unknown
        /// Another transaction has the account's links or the handle; nothing changed.
        case busy
    }

    /// Confirms a link, or ends it. - Parameter number: the number typed; `nil`: the owner did not ask.
    public func confirm(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], number: Int32?, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Confirmation?, PermitVerdict) {
        let answer: Arguments = [
            "realm": realm, "user": user, "token_hash": tokenHash, "number": number, "source": source,
        ]
        return try await database.one(Self.calls.confirm, answer + permits.arguments)
    }

    /// What a redemption or a poll (RFC 8628 §3.5) learns. A redemption is decided or busy.
    public enum Outcome: Sendable {
        case pending
        /// Sooner than the interval, which is five seconds longer now.
        case slowDown
        /// A wrong number was typed, or the owner did not ask.
        case denied
        /// Another transaction has the account's links or the handle; nothing was consumed.
        case busy
        /// Confirmed or refused.
        case decided(SignInOutcome)
    }

    /// Consumes a link that the app opened, and opens the session, in one statement.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again: `gt:urn:cocoar:magic`.
    ///   - tokenHash: SHA-256 of the token.
    ///   - handle: the handle that the link must belong to, when the app named it.
    ///   - secondFactor: what is presented beside the link; `nil` in the first call.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(
        realm: UUIDValue, client: UUIDValue, permission: String, user: UUIDValue, tokenHash: [UInt8], handle: [UInt8]?,
        session: NewSession, permits: PermitRequest, secondFactor: SecondFactorProof? = nil
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let link: Arguments = ["user": user, "token_hash": tokenHash, "handle": handle]
        return try await database.one(
            session.page == nil ? Self.calls.redeem : Self.calls.redeemOnPage,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits) + link
                + secondFactor.arguments)
    }

    /// Returns the state of a handle's link. After a confirmation it opens the session, once, in the same statement.
    /// - Parameters:
    ///   - client: the client's row key.
    ///   - permission: checked again: `gt:urn:cocoar:magic`.
    ///   - handle: the handle's id, 16 bytes.
    ///   - secondFactor: what is presented beside the confirmation; `nil` in the first call.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func poll(
        realm: UUIDValue, client: UUIDValue, permission: String, handle: [UInt8], session: NewSession,
        permits: PermitRequest, secondFactor: SecondFactorProof? = nil
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let poll: Arguments = ["handle": handle]
        return try await database.one(
            session.page == nil ? Self.calls.poll : Self.calls.pollOnPage,
            session.arguments(realm: realm, client: client, permission: permission, permits: permits) + poll
                + secondFactor.arguments)
    }
}

extension MagicLinkStore.Confirmation: ColumnValue {}

extension MagicLinkStore {
    struct Calls: Sendable {
        let page = FunctionCall<(Page?, PermitVerdict)>(
            "link_page", ["realm", "user", "token_hash", PermitRequest.argument], effect: .once
        ) { columns in
            let origin = RequestOrigin.columns(&columns), ended = columns("ended", Confirmation?.self)
            return columns.limited { (row) throws(StoreError) in
                if let ended = try row[ended] { return .ended(ended) }
                return .open(try row.some(origin(row)))
            }
        }
        let confirm = FunctionCall<(Confirmation?, PermitVerdict)>(
            "confirm_link", ["realm", "user", "token_hash", "number", "source", PermitRequest.argument], effect: .once
        ) { columns in
            let outcome = columns("outcome", Confirmation.self)
            return columns.limited { (row) throws(StoreError) in try row[outcome] }
        }
        let redeem = redeemCall("redeem_link", NewSession.signInArguments)
        let redeemOnPage = redeemCall("redeem_link_on_page", NewSession.signInOnPageArguments)
        let poll = pollCall("poll_link", NewSession.signInArguments)
        let pollOnPage = pollCall("poll_link_on_page", NewSession.signInOnPageArguments)
    }
    static let calls = Calls()

    private static func redeemCall(
        _ name: String, _ signIn: [Argument]
    ) -> FunctionCall<(Outcome?, PermitVerdict)> {
        FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_link", named: name,
            signIn + ["user", "token_hash", "handle", SecondFactorProof.argument],
            effect: .once, returns: Outcome.columns)
    }

    private static func pollCall(
        _ name: String, _ signIn: [Argument]
    ) -> FunctionCall<(Outcome?, PermitVerdict)> {
        FunctionCall<(Outcome?, PermitVerdict)>(
            "poll_link", named: name, signIn + ["handle", SecondFactorProof.argument], effect: .once,
            returns: Outcome.columns)
    }
}

extension MagicLinkStore.Outcome {
    fileprivate static func columns(_ columns: inout Columns) -> RowDecoder<(Self?, PermitVerdict)> {
        let outcome = columns("outcome", String.self), signIn = SignInOutcome.columns(&columns)
        return columns.limited { (row) throws(StoreError) in
            switch try row[outcome] {
            case "pending": .pending
            case "slow_down": .slowDown
            case "denied": .denied
            case "busy": .busy
            default: .decided(try signIn(row))
            }
        }
    }
}
