/// E-mail codes: requests, decisions and redemption.
public struct SignInStore: Sendable {
    let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A request for a code. Never reads the users table: a worker decides later.
    public struct CodeRequest: Sendable {
        /// What the code is asked for.
        public enum Kind: String, Sendable {
            /// To sign in, and under posture `JitOnOtp` to register.
            case otp
            /// To register, under posture `ExplicitEndpoint`.
            case register
        }

        /// What the code is asked for.
        public let kind: Kind
        /// The tenant.
        public let realm: UUIDValue
        /// The new handle's id, 16 random bytes.
        public let id: [UInt8]
        /// The handle to send again for, if one was presented.
        public let resendOf: [UInt8]?
        /// The user's address.
        public let email: String
        /// The folded address.
        public let emailKey: String
        /// Set when the request named a client.
        public let client: UUIDValue?
        /// The App whose host was asked.
        public let app: String?
        /// Given name.
        public let firstName: String?
        /// Family name.
        public let lastName: String?
        /// Where it came from: an address, IPv6 by /64.
        public let source: String
        /// `sub` and `sid` of the ID token that came with it.
        public let hint: (user: UUIDValue, session: UUIDValue)?
        /// Seconds the handle lives.
        public let lifetime: Int32
        /// The realm's limit of wrong codes; `nil` while it is only watched.
        public let brake: Budget?

        /// Takes the parts as they are.
        public init(
            kind: Kind, realm: UUIDValue, id: [UInt8], resendOf: [UInt8]?, email: String, emailKey: String,
            client: UUIDValue?, app: String?, firstName: String?, lastName: String?, source: String,
            hint: (user: UUIDValue, session: UUIDValue)?, lifetime: Int32, brake: Budget?
        ) {
            self.kind = kind
            self.app = app
            self.realm = realm
            self.id = id
            self.resendOf = resendOf
            self.email = email
            self.emailKey = emailKey
            self.client = client
            self.firstName = firstName
            self.lastName = lastName
            self.source = source
            self.hint = hint
            self.lifetime = lifetime
            self.brake = brake
        }
    }

    /// Records a request. - Parameter permits: what must be granted first.
    /// - Returns: the id of the handle to answer with, `nil` when a limit refused it.
    public func request(
        _ request: CodeRequest, permits: PermitRequest
    ) async throws(StoreError) -> (handle: [UInt8]?, verdict: PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(request.realm), .bytes(request.id), request.resendOf.map { .bytes($0) } ?? .null,
                .text(request.kind.rawValue), .text(request.email), .text(request.emailKey),
                request.client.map { .uuid($0) } ?? .null, request.app.map { .text($0) } ?? .null,
                request.firstName.map { .text($0) } ?? .null, request.lastName.map { .text($0) } ?? .null,
                .text(request.source), request.hint.map { .uuid($0.user) } ?? .null,
                request.hint.map { .uuid($0.session) } ?? .null, .int(request.lifetime),
            ] + permits.parameters + Budget.parameters(request.brake)
        let rows = try await database.query(Self.recordRequest, parameters) { (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 4, refused: 2, retryAfter: 3)
            return try row.text(0) == "accepted" ? (try row.bytes(1), verdict) : (nil, verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// A request waiting for its decision.
    public struct PendingRequest: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The row's id.
        public let id: [UInt8]
        /// `otp`, `register` or `magic`.
        public let kind: String
        /// The folded address.
        public let emailKey: String
        /// The realm's name for users.
        public let displayName: String
        /// The realm's public origin.
        public let publicOrigin: String
        /// Seconds.
        public let otpLifetime: Int32
        /// Seconds.
        public let magicLinkLifetime: Int32
        /// How many digits a code of the realm has.
        public let otpDigits: Int32
    }

    /// A code made for a pending request, in case the decision is to send one.
    public struct CodeDraft: Sendable {
        /// The id of the code.
        public let codeID: UUIDValue
        /// 16 random bytes.
        public let salt: [UInt8]
        /// HMAC of the code under the server's key, 32 bytes.
        public let keyed: [UInt8]
        /// The id of the mail.
        public let mailID: UUIDValue
        /// The sealed mail.
        public let payload: [UInt8]

        /// Takes the parts as they are.
        public init(codeID: UUIDValue, salt: [UInt8], keyed: [UInt8], mailID: UUIDValue, payload: [UInt8]) {
            self.codeID = codeID
            self.salt = salt
            self.keyed = keyed
            self.mailID = mailID
            self.payload = payload
        }
    }

    /// Runs a transaction that decides requests. It may run more than once (``Database/transaction(_:)``).
    public func transaction<R: Sendable>(
        _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await database.transaction(body)
    }

    /// Takes up to `limit` pending requests, to be decided before the transaction ends.
    /// - Parameter realm: whose turn was last: the realm that follows is the first.
    public static func takeUndecided(
        limit: Int32, after realm: UUIDValue, in transaction: isolated Connection
    ) throws(StoreError) -> [PendingRequest] {
        try transaction.query(takeUndecided, [.int(limit), .uuid(realm)]) { (row) throws(StoreError) in
            PendingRequest(
                realm: try row.uuid(0), id: try row.bytes(1), kind: try row.text(6), emailKey: try row.text(2),
                displayName: try row.text(3), publicOrigin: try row.text(4), otpLifetime: try row.int(5),
                magicLinkLifetime: try row.int(7), otpDigits: try row.int(8))
        }
    }

    /// Decides a request for a code: stores the drafted code and queues its mail, or does neither.
    /// - Returns: whether the mail was queued.
    public static func decide(
        _ request: PendingRequest, _ draft: CodeDraft, in transaction: isolated Connection
    ) throws(StoreError) -> Bool {
        let outcome = try transaction.query(
            decideCode,
            [
                .uuid(request.realm), .bytes(request.id), .uuid(draft.codeID), .bytes(draft.salt),
                .bytes(draft.keyed), .uuid(draft.mailID), .bytes(draft.payload), .text("otp"),
            ]
        ) { (row) throws(StoreError) in try row.text(0) }
        return outcome.first == "sent"
    }

    private static let recordRequest = Statement(
        name: "record_code_request",
        sql: """
            SELECT outcome, handle, limit_ord, retry_after, granted
              FROM postern.record_code_request($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                                               $18, $19, $20, $21, $22)
            """,
        effect: .once)
    private static let takeUndecided = Statement(
        name: "take_undecided",
        sql: """
            SELECT realm_id, id, email_key, display_name, public_origin, otp_lifetime, kind, magic_link_lifetime,
                   otp_digits
              FROM postern.take_undecided($1, $2)
            """,
        effect: .once)
    private static let decideCode = Statement(
        name: "decide_code", sql: "SELECT postern.decide_code($1, $2, $3, $4, $5, $6, $7, $8)", effect: .once)
}
