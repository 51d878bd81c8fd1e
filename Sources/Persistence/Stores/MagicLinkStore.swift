/// Magic links: requests, the page, confirmation, redemption and polling. Decisions are ``SignInStore``'s, with those about codes.
public struct MagicLinkStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A request for a link. Never reads the users table: a worker decides later.
    public struct LinkRequest: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The new handle's id, 16 random bytes.
        public let id: [UInt8]
        /// The handle to send again for, if one was presented.
        public let resendOf: [UInt8]?
        /// The address as typed.
        public let email: String
        /// The folded address.
        public let emailKey: String
        /// Set when the request named a client.
        public let client: UUIDValue?
        /// The App whose host was asked.
        public let app: String?
        /// Where it came from: an address, IPv6 by /64.
        public let source: String
        /// Seconds the handle lives.
        public let lifetime: Int32
        /// What must be granted first.
        public let permits: PermitRequest

        /// Takes the parts as they are.
        public init(
            realm: UUIDValue, id: [UInt8], resendOf: [UInt8]?, email: String, emailKey: String, client: UUIDValue?,
            app: String?, source: String, lifetime: Int32, permits: PermitRequest
        ) {
            self.realm = realm
            self.id = id
            self.resendOf = resendOf
            self.email = email
            self.emailKey = emailKey
            self.client = client
            self.app = app
            self.source = source
            self.lifetime = lifetime
            self.permits = permits
        }
    }

    /// Records a request. - Returns: the id of the handle to answer with, `nil` when a limit refused it.
    public func request(_ request: LinkRequest) async throws(StoreError) -> (handle: [UInt8]?, verdict: PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(request.realm), .bytes(request.id), request.resendOf.map { .bytes($0) } ?? .null,
                .text(request.email), .text(request.emailKey), request.client.map { .uuid($0) } ?? .null,
                .text(request.source), .int(request.lifetime),
            ] + request.permits.parameters + [request.app.map { .text($0) } ?? .null]
        let rows = try await database.query(Self.requestLink, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 4, refused: 2, retryAfter: 3)
            return try row.text(0) == "accepted" ? (try row.bytes(1), verdict) : (nil, verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// The right number of a link, alive or ended; `nil` for one nobody was sent. Changes nothing.
    public func number(realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8]) async throws(StoreError) -> Int32? {
        let rows = try await database.query(Self.linkNumber, [.uuid(realm), .uuid(user), .bytes(tokenHash)]) {
            (row) throws(StoreError) in try row.intOrNil(0)
        }
        return rows.first ?? nil
    }

    /// What became of an answer to the page's question.
    public enum Confirmation: String, Sendable, CaseIterable {
        /// The right number: the device that asked may sign in.
        case confirmed
        /// The wrong number, or none of them: the link is dead.
        case denied
        /// The link was confirmed or denied before.
        case answered
        /// The link was opened in the app.
        case redeemed
        /// Another link was used, or ten newer ones were made.
        case superseded
        case expired
        case unknown
        case limited = "rate_limited"
    }

    /// Confirms a link, or ends it. - Parameter number: the number picked; `nil` denies.
    public func confirm(
        realm: UUIDValue, user: UUIDValue, tokenHash: [UInt8], number: Int32?, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Confirmation, PermitVerdict) {
        let parameters: [Parameter] =
            [.uuid(realm), .uuid(user), .bytes(tokenHash), number.map { .int($0) } ?? .null, .text(source)]
            + permits.parameters
        let rows = try await database.query(Self.confirmLink, parameters) { (row) throws(StoreError) in
            guard let outcome = Confirmation(rawValue: try row.text(0)) else { throw .malformedResult }
            return (outcome, try row.permitVerdict(granted: 3, refused: 1, retryAfter: 2))
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// A link's token at the token endpoint, and the session that a live one starts.
    public struct Redemption: Sendable {
        let realm: UUIDValue
        let client: UUIDValue
        let permission: String
        let user: UUIDValue
        let tokenHash: [UInt8]
        let session: NewSession
        let permits: PermitRequest
        let secondFactor: SecondFactorProof?

        /// - Parameters:
        ///   - client: the client's row key.
        ///   - permission: checked again: `gt:urn:cocoar:magic`.
        ///   - tokenHash: SHA-256 of the token.
        ///   - secondFactor: what is presented beside the link; `nil` in the first call.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, user: UUIDValue, tokenHash: [UInt8],
            session: NewSession, permits: PermitRequest, secondFactor: SecondFactorProof? = nil
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.user = user
            self.tokenHash = tokenHash
            self.session = session
            self.permits = permits
            self.secondFactor = secondFactor
        }
    }

    /// Consumes a link and opens the session, in one statement.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; the session's presence then tells.
    public func redeem(_ redemption: Redemption) async throws(StoreError) -> (SignInOutcome, PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(redemption.realm), .uuid(redemption.client), .text(redemption.permission),
                .uuid(redemption.user), .bytes(redemption.tokenHash),
            ] + redemption.session.parameters + redemption.permits.parameters
            + SecondFactorProof.parameters(redemption.secondFactor)
        let rows = try await database.query(Self.redeemMagic, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 7, refused: 5, retryAfter: 6)
            let outcome: SignInOutcome =
                switch try row.text(0) {
                case "ok": .signedIn(user: try row.uuid(2), now: try row.double(3), sessionExpiresAt: try row.double(4))
                case "rate_limited": .limited
                case let outcome: try row.refusal(outcome, reason: 1, now: 3, factor: 8)
                }
            return (outcome, verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
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

    /// What a poll learns (RFC 8628 §3.5).
    public enum PollOutcome: Sendable {
        case pending
        /// Sooner than the interval, which is five seconds longer now.
        case slowDown
        /// Somebody picked a wrong number.
        case denied
        /// Confirmed, refused or limited.
        case decided(SignInOutcome)
    }

    /// Says what has become of a handle's link; after a confirmation opens the session, once, in the same statement.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; the session's presence then tells.
    public func poll(_ poll: Poll) async throws(StoreError) -> (PollOutcome, PermitVerdict) {
        let parameters: [Parameter] =
            [.uuid(poll.realm), .uuid(poll.client), .text(poll.permission), .bytes(poll.handle)]
            + poll.session.parameters + poll.permits.parameters + SecondFactorProof.parameters(poll.secondFactor)
        let rows = try await database.query(Self.pollMagic, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 7, refused: 5, retryAfter: 6)
            let outcome: PollOutcome =
                switch try row.text(0) {
                case "ok":
                    .decided(
                        .signedIn(user: try row.uuid(2), now: try row.double(3), sessionExpiresAt: try row.double(4)))
                case "pending": .pending
                case "slow_down": .slowDown
                case "denied": .denied
                case "rate_limited": .decided(.limited)
                case let outcome: .decided(try row.refusal(outcome, reason: 1, now: 3, factor: 8))
                }
            return (outcome, verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }
}

extension MagicLinkStore {
    private static let requestLink = Statement(
        name: "request_link",
        sql: """
            SELECT outcome, handle, limit_ord, retry_after, granted
              FROM postern.request_link($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
            """,
        effect: .once)
    private static let linkNumber = Statement(
        name: "link_number", sql: "SELECT postern.link_number($1, $2, $3)", effect: .readOnly)
    private static let confirmLink = Statement(
        name: "confirm_link",
        sql: """
            SELECT outcome, limit_ord, retry_after, granted
              FROM postern.confirm_link($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            """,
        effect: .once)
    private static let redeemMagic = Statement(
        name: "redeem_magic",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at
              FROM postern.redeem_magic($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                                        $20, $21, $22)
            """,
        effect: .once)
    private static let pollMagic = Statement(
        name: "poll_magic",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at
              FROM postern.poll_magic($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                                      $19, $20, $21)
            """,
        effect: .once)
}
