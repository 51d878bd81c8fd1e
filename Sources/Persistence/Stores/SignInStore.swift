/// E-mail codes: requests, decisions and redemption.
public struct SignInStore: Sendable {
    private let database: Database

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
        /// Seconds the handle lives.
        public let lifetime: Int32
        /// What must be granted first.
        public let permits: PermitRequest

        /// Takes the parts as they are.
        public init(
            kind: Kind, realm: UUIDValue, id: [UInt8], resendOf: [UInt8]?, email: String, emailKey: String,
            client: UUIDValue?, app: String?, firstName: String?, lastName: String?, lifetime: Int32,
            permits: PermitRequest
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
            self.lifetime = lifetime
            self.permits = permits
        }
    }

    /// Records a request. - Returns: the id of the handle to answer with, `nil` when a limit refused it.
    public func request(_ request: CodeRequest) async throws(StoreError) -> (handle: [UInt8]?, verdict: PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(request.realm), .bytes(request.id), request.resendOf.map { .bytes($0) } ?? .null,
                .text(request.kind.rawValue),
                .text(request.email), .text(request.emailKey), request.client.map { .uuid($0) } ?? .null,
                request.firstName.map { .text($0) } ?? .null, request.lastName.map { .text($0) } ?? .null,
                .int(request.lifetime),
            ] + request.permits.parameters + [request.app.map { .text($0) } ?? .null]
        let rows = try await database.query(Self.requestCode, parameters) { (row) throws(StoreError) in
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
        let kind: String
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

    /// Decides up to `limit` pending requests in one transaction: each becomes a code or a link and a queued mail, or nothing.
    /// - Parameters:
    ///   - realm: whose turn was last: the realm that follows is the first in this batch.
    ///   - draft: makes a code, in case the decision is to send one.
    ///   - link: makes a link for a user.
    /// - Returns: the number of requests decided and of mails queued, and whose turn was last.
    public func decide(
        limit: Int32, after realm: UUIDValue,
        draft: @escaping @Sendable (PendingRequest) throws(StoreError) -> CodeDraft,
        link: @escaping @Sendable (PendingRequest, UUIDValue) throws(StoreError) -> MagicLinkStore.Draft
    ) async throws(StoreError) -> (decided: Int, mails: Int, last: UUIDValue) {
        try await database.transaction { (transaction) throws(StoreError) in
            let pending = try transaction.query(Self.takeUndecided, [.int(limit), .uuid(realm)]) {
                (row) throws(StoreError) in
                PendingRequest(
                    realm: try row.uuid(0), id: try row.bytes(1), kind: try row.text(6), emailKey: try row.text(2),
                    displayName: try row.text(3), publicOrigin: try row.text(4), otpLifetime: try row.int(5),
                    magicLinkLifetime: try row.int(7))
            }
            var mails = 0
            for request in pending {
                if request.kind == "magic" {
                    if try MagicLinkStore.decide(request, in: transaction, draft: link) { mails += 1 }
                    continue
                }
                let code = try draft(request)
                let outcome = try transaction.query(
                    Self.decideOTP,
                    [
                        .uuid(request.realm), .bytes(request.id), .uuid(code.codeID), .bytes(code.salt),
                        .bytes(code.keyed),
                        .uuid(code.mailID), .bytes(code.payload), .text("otp"),
                    ]
                ) { (row) throws(StoreError) in try row.text(0) }
                if outcome.first == "sent" { mails += 1 }
            }
            return (pending.count, mails, pending.last?.realm ?? realm)
        }
    }

    /// A code presented at the token endpoint, and the session that a right one starts.
    public struct Redemption: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The client's row key.
        public let client: UUIDValue
        /// The permission that is checked again: `gt:urn:cocoar:otp`.
        public let permission: String
        /// The folded address.
        public let emailKey: String
        /// The handle's id; `nil` when redeemed by address alone.
        public let handle: [UInt8]?
        /// HMAC of the presented code under each server key.
        public let keyed: [[UInt8]]
        /// The session.
        public let session: NewSession
        /// What must be granted first.
        public let permits: PermitRequest
        /// The failure budget of an account by address alone.
        public let failures: (permits: Int32, per: Double, burst: Int32)
        /// What is presented beside the code; `nil` in the first call.
        public let secondFactor: SecondFactorProof?

        /// Takes the parts as they are.
        public init(
            realm: UUIDValue, client: UUIDValue, permission: String, emailKey: String, handle: [UInt8]?,
            keyed: [[UInt8]],
            session: NewSession, permits: PermitRequest,
            failures: (permits: Int32, per: Double, burst: Int32), secondFactor: SecondFactorProof? = nil
        ) {
            self.realm = realm
            self.client = client
            self.permission = permission
            self.emailKey = emailKey
            self.handle = handle
            self.keyed = keyed
            self.session = session
            self.permits = permits
            self.failures = failures
            self.secondFactor = secondFactor
        }
    }

    /// Counts the try, compares, consumes and opens the session, in one statement. For an account with a second factor nothing
    /// is consumed until a call brings its proof; a wrong second factor is counted, and is no try at the first one.
    /// - Throws: ``StoreError/inDoubt`` when the answer was lost; the session's presence then tells.
    public func redeem(_ redemption: Redemption) async throws(StoreError) -> (SignInOutcome, PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(redemption.realm), .uuid(redemption.client), .text(redemption.permission),
                .text(redemption.emailKey),
                redemption.handle.map { .bytes($0) } ?? .null, .byteArrays(redemption.keyed),
            ] + redemption.session.parameters + redemption.permits.parameters + [
                .int(redemption.failures.permits), .double(redemption.failures.per), .int(redemption.failures.burst),
            ] + SecondFactorProof.parameters(redemption.secondFactor)
        let rows = try await database.query(Self.redeemOTP, parameters) { (row) throws(StoreError) in
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

    private static let requestCode = Statement(
        name: "request_code",
        sql: """
            SELECT outcome, handle, limit_ord, retry_after, granted
              FROM postern.request_code($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            """,
        effect: .once)
    private static let takeUndecided = Statement(
        name: "take_undecided",
        sql: """
            SELECT realm_id, id, email_key, display_name, public_origin, otp_lifetime, kind, magic_link_lifetime
              FROM postern.take_undecided($1, $2)
            """,
        effect: .once)
    private static let decideOTP = Statement(
        name: "decide_otp", sql: "SELECT postern.decide_otp($1, $2, $3, $4, $5, $6, $7, $8)", effect: .once)
    private static let redeemOTP = Statement(
        name: "redeem_otp",
        sql: """
            SELECT outcome, reason, user_id, db_now, session_expires_at, limit_ord, retry_after, granted,
                   factor, sealed_seed, last_step_at
              FROM postern.redeem_otp($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                                      $20, $21, $22, $23, $24, $25, $26)
            """,
        effect: .once)
}
