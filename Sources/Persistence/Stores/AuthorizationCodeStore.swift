/// Authorization codes at the token endpoint, and pushed authorization requests.
public struct AuthorizationCodeStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A code as it is presented.
    public struct Presented: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The client's row key.
        public let client: UUIDValue
        /// SHA-256 of the code, 32 bytes.
        public let codeHash: [UInt8]
        /// As sent; `nil` when it was not.
        public let redirectURI: String?
        /// `S256` of the verifier, base64url; `nil` when none was sent.
        public let codeChallenge: String?
        /// Narrows the resources; `nil`: all of them.
        public let resources: [String]?
        /// The proof that came with it.
        public let proof: ProofUse?

        public init(
            realm: UUIDValue, client: UUIDValue, codeHash: [UInt8], redirectURI: String?, codeChallenge: String?,
            resources: [String]?, proof: ProofUse? = nil
        ) {
            self.realm = realm
            self.client = client
            self.codeHash = codeHash
            self.redirectURI = redirectURI
            self.codeChallenge = codeChallenge
            self.resources = resources
            self.proof = proof
        }
    }

    /// What a code was issued for, and the session that it opened. Times are seconds since the epoch.
    public struct Redeemed: Sendable {
        /// The user, `sub`.
        public let user: UUIDValue
        /// Scope names.
        public let scope: [String]
        /// `aud` of the tokens.
        public let resources: [String]
        /// Authentication methods (RFC 8176).
        public let amr: [String]
        /// Authentication context class.
        public let acr: String?
        /// Of the authorization request.
        public let nonce: String?
        /// When the user signed in.
        public let authTime: Double
        /// The database clock.
        public let now: Double
        /// Absolute end of the session.
        public let sessionExpiresAt: Double
        /// Whether the session has the refresh token that was offered.
        public let hasRefreshToken: Bool
    }

    /// The outcome of a presented code.
    public enum Outcome: Sendable {
        case redeemed(Redeemed)
        /// A resource that the code does not hold; the code can be used.
        case invalidTarget
        /// The reason is for logs.
        case refused(String)
    }

    /// Consumes a code and opens the session, in one statement. Repeated with the same session it says the same again,
    /// so a lost answer is asked for once more.
    /// - Parameter session: of which only the ids, hashes and lifetimes count; what the code was issued for, SQL knows.
    public func redeem(
        _ presented: Presented, session: NewSession, permits: PermitRequest
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let code: Arguments = [
            "code_hash": presented.codeHash, "redirect_uri": presented.redirectURI,
            "challenge": presented.codeChallenge, "resource": presented.resources,
        ]
        return try await database.one(
            Self.calls.redeem,
            session.arguments(
                realm: presented.realm, client: presented.client, permission: Self.permission, permits: permits)
                + code)
    }

    /// That the client needs.
    static let permission = "gt:authorization_code"

    /// What came of a request that is to be stored.
    public enum Pushed: Sendable {
        case stored
        /// The source has as many bytes unopened for this client as it may have, until this time, in seconds from now.
        case full(seconds: Double)
    }

    /// Stores an authorization request.
    /// - Parameters:
    ///   - idHash: SHA-256 of its `request_uri`.
    ///   - client: the client's row key.
    ///   - source: where it came from.
    ///   - lifetime: seconds in which it must be opened.
    /// - Returns: `nil` when a limit refused it.
    public func push(
        realm: UUIDValue, idHash: [UInt8], client: UUIDValue, source: String, sealed: [UInt8], lifetime: Int32,
        proof: ProofUse?, permits: PermitRequest
    ) async throws(StoreError) -> (Pushed?, PermitVerdict) {
        let request: Arguments = [
            "id_hash": idHash, "client": client, "source": source, "sealed": sealed, "lifetime": lifetime,
        ]
        return try await database.one(
            Self.calls.push, ["realm": realm] + proof.arguments(in: realm) + permits.arguments + request)
    }

    /// The sealed request; `nil` when it is unknown, another client's, late or used.
    /// - Parameter isUnderWay: a page asks that was shown for this request.
    public func open(
        realm: UUIDValue, idHash: [UInt8], client: UUIDValue, isUnderWay: Bool
    ) async throws(StoreError) -> [UInt8]? {
        try await database.one(
            Self.calls.open, ["realm": realm, "id_hash": idHash, "client": client, "is_under_way": isUnderWay])
    }

    /// Uses up a request that is answered by an error. - Returns: `false` when it was answered before.
    public func use(realm: UUIDValue, idHash: [UInt8]) async throws(StoreError) -> Bool {
        try await database.one(Self.calls.use, ["realm": realm, "id_hash": idHash])
    }
}

extension AuthorizationCodeStore {
    struct Calls: Sendable {
        let redeem = FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_authorization_code",
            NewSession.signInArguments + ["code_hash", "redirect_uri", "challenge", "resource"],
            effect: .idempotent
        ) { columns in
            let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
            let redeemed = columns.record { (row) throws(StoreError) in
                Redeemed(
                    user: try row("user_id"), scope: try row("scope"), resources: try row("resource"),
                    amr: try row("amr"), acr: try row("acr"), nonce: try row("nonce"), authTime: try row("auth_time"),
                    now: try row("db_now"), sessionExpiresAt: try row("session_expires_at"),
                    hasRefreshToken: try row("has_refresh_token"))
            }
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "ok": .redeemed(try redeemed(row))
                case "invalid_target": .invalidTarget
                default: .refused(try row[reason] ?? "refused")
                }
            }
        }
        let push = FunctionCall<(Pushed?, PermitVerdict)>(
            "push_request",
            [
                "realm", ProofUse.argument, PermitRequest.argument, "id_hash", "client", "source", "sealed", "lifetime",
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), wait = columns("retry_after", Double?.self)
            return columns.limited { (row) throws(StoreError) in
                try row[outcome] == "stored" ? .stored : .full(seconds: try row[wait] ?? 1)
            }
        }
        let open = FunctionCall<[UInt8]?>(
            "open_pushed_request", ["realm", "id_hash", "client", "is_under_way"], effect: .idempotent)
        let use = FunctionCall<Bool>("use_pushed_request", ["realm", "id_hash"], effect: .once)
    }
    static let calls = Calls()
}
