/// Magic links: requests, the page, confirmation, redemption and polling. Decisions are ``SignInStore``'s, with those
/// about codes.
public struct MagicLinkStore: Sendable {
    let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    func only<T: Sendable>(
        _ statement: Statement, _ parameters: [Parameter],
        _ decode: @Sendable (borrowing Row) throws(StoreError) -> T
    ) async throws(StoreError) -> T {
        guard let only = try await database.query(statement, parameters, decode).first else { throw .malformedResult }
        return only
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
        case limited = "rate_limited"
        /// Another transaction has the account's links or the handle; nothing changed.
        case busy
    }

    /// Confirms a link, or ends it. - Parameter number: the number typed; `nil`: the owner did not ask.
    public func confirm(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], number: Int32?, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Confirmation, PermitVerdict) {
        let parameters: [Parameter] =
            [.uuid(realm), .uuid(user), .bytes(tokenHash), number.map { .int($0) } ?? .null, .text(source)]
            + permits.parameters
        return try await only(Self.confirmLink, parameters) { (row) throws(StoreError) in
            guard let outcome = Confirmation(rawValue: try row.text(0)) else { throw .malformedResult }
            return (outcome, try row.permitVerdict(granted: 3, refused: 1, retryAfter: 2))
        }
    }

    /// A link's token at the token endpoint, and the session that a live one starts.
    public struct Redemption: Sendable {
        let realm: UUIDValue
        let client: UUIDValue
        let permission: String
        let user: UUIDValue
        let tokenHash: [UInt8]
        let handle: [UInt8]?
        let session: NewSession
        let permits: PermitRequest
        let secondFactor: SecondFactorProof?

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - permission: checked again: `gt:urn:cocoar:magic`.
        ///   - tokenHash: SHA-256 of the token.
        ///   - handle: the handle that the link must belong to, when the app named it.
        ///   - secondFactor: what is presented beside the link; `nil` in the first call.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, user: UUIDValue, tokenHash: [UInt8],
            handle: [UInt8]?, session: NewSession, permits: PermitRequest, secondFactor: SecondFactorProof? = nil
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.user = user
            self.tokenHash = tokenHash
            self.handle = handle
            self.session = session
            self.permits = permits
            self.secondFactor = secondFactor
        }
    }

    /// Consumes a link and opens the session, in one statement.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func redeem(_ redemption: Redemption) async throws(StoreError) -> (Outcome, PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(redemption.realm), .uuid(redemption.client), .text(redemption.permission),
                .uuid(redemption.user), .bytes(redemption.tokenHash), redemption.handle.map { .bytes($0) } ?? .null,
            ] + redemption.session.parametersWithKey + redemption.permits.parameters
            + SecondFactorProof.parameters(redemption.secondFactor) + [redemption.session.userAgentParameter]
        return try await only(Self.redeemLink, parameters, Self.outcome)
    }

    /// A poll by the device that asked, and the session that a confirmation starts.
    public struct Poll: Sendable {
        let realm: UUIDValue
        let client: UUIDValue
        let permission: String
        let handle: [UInt8]
        let session: NewSession
        let permits: PermitRequest
        let secondFactor: SecondFactorProof?

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - permission: checked again: `gt:urn:cocoar:magic`.
        ///   - handle: the handle's id, 16 bytes.
        ///   - secondFactor: what is presented beside the confirmation; `nil` in the first call.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, handle: [UInt8], session: NewSession,
            permits: PermitRequest, secondFactor: SecondFactorProof? = nil
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.handle = handle
            self.session = session
            self.permits = permits
            self.secondFactor = secondFactor
        }
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
        /// Confirmed, refused or limited.
        case decided(SignInOutcome)
    }

    private static func outcome(_ row: borrowing Row) throws(StoreError) -> (Outcome, PermitVerdict) {
        let verdict = try row.permitVerdict(granted: 7, refused: 5, retryAfter: 6)
        let outcome: Outcome =
            switch try row.text(0) {
            case "ok":
                .decided(.signedIn(user: try row.uuid(2), now: try row.double(3), sessionExpiresAt: try row.double(4)))
            case "pending": .pending
            case "slow_down": .slowDown
            case "denied": .denied
            case "busy": .busy
            case "rate_limited": .decided(.limited)
            case let outcome: .decided(try row.refusal(outcome, reason: 1, now: 3, factor: 8))
            }
        return (outcome, verdict)
    }

    /// Returns the state of a handle's link. After a confirmation it opens the session, once, in the same statement.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; then the session's presence shows whether it
    ///   happened.
    public func poll(_ poll: Poll) async throws(StoreError) -> (Outcome, PermitVerdict) {
        let parameters: [Parameter] =
            [.uuid(poll.realm), .uuid(poll.client), .text(poll.permission), .bytes(poll.handle)]
            + poll.session.parametersWithKey + poll.permits.parameters
            + SecondFactorProof.parameters(poll.secondFactor) + [poll.session.userAgentParameter]
        return try await only(Self.pollLink, parameters, Self.outcome)
    }
}

extension MagicLinkStore {
    private static let confirmLink = Statement(
        name: "confirm_link",
        sql: """
            SELECT outcome, limit_ord, retry_after, granted
              FROM postern.confirm_link($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """,
        effect: .once)
    private static let redeemLink = Statement(
        name: "redeem_link",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at
              FROM postern.redeem_link($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                                       postern.opened_from($15, $25), $16, $17, $18, $19, $20, $21, $22, $23, $24)
            """,
        effect: .once)
    private static let pollLink = Statement(
        name: "poll_link",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at
              FROM postern.poll_link($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                                     postern.opened_from($13, $23), $14, $15, $16, $17, $18, $19, $20, $21, $22)
            """,
        effect: .once)
}
