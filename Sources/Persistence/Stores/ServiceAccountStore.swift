/// Service accounts: what their tokens are made from, and whether one is still good.
public struct ServiceAccountStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The outcome of a token request.
    public enum Outcome: Sendable {
        /// Times are seconds since the epoch by the database clock.
        case granted(account: UUIDValue, tokenSalt: [UInt8], createdAt: Double, now: Double)
        /// The client may no longer act for itself.
        case refused
        case limited
    }

    /// Takes permits and names the client's service account. Repeating it costs a permit and nothing else.
    public func grant(
        realm: UUIDValue, client: UUIDValue, source: String, permits: PermitRequest
    ) async throws(StoreError) -> (Outcome, PermitVerdict) {
        let rows = try await database.query(
            Self.grant, [.uuid(realm), .uuid(client), .text(source)] + permits.parameters
        ) { (row) throws(StoreError) in
            let outcome: Outcome =
                switch try row.text(0) {
                case "ok":
                    .granted(
                        account: try row.uuid(1), tokenSalt: try row.bytes(2), createdAt: try row.double(3),
                        now: try row.double(4))
                case "rate_limited": .limited
                default: .refused
                }
            return (outcome, try row.permitVerdict(granted: 7, refused: 5, retryAfter: 6))
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// The account behind an access token while it may act, else `nil`.
    /// - Parameter jti: the token's 16-byte identifier, looked up among those revoked.
    public func live(realm: UUIDValue, account: UUIDValue, jti: [UInt8]) async throws(StoreError) -> LiveServiceAccount?
    {
        try await database.query(Self.introspect, [.uuid(realm), .uuid(account), .bytes(jti)]) {
            (row) throws(StoreError) in
            LiveServiceAccount(
                id: account, client: try row.uuid(0), clientID: try row.text(1), tokenSalt: try row.bytes(2),
                createdAt: try row.double(3), now: try row.double(4), since: try row.double(5))
        }.first
    }

    /// Ends one access token of the account, which must be `client`'s.
    /// - Parameter expiresAt: seconds since the epoch.
    public func revoke(
        realm: UUIDValue, client: UUIDValue, account: UUIDValue, jti: [UInt8], expiresAt: Double
    ) async throws(StoreError) {
        _ = try await database.query(
            Self.revoke, [.uuid(realm), .uuid(client), .uuid(account), .bytes(jti), .double(expiresAt)]
        ) { (row) throws(StoreError) in try row.bool(0) }
    }

    private static let grant = Statement(
        name: "client_credentials",
        sql: """
            SELECT outcome, account, token_salt, created_at, db_now, limit_ord, retry_after, granted
              FROM postern.client_credentials($1, $2, $3, $4, $5, $6, $7, $8)
            """,
        effect: .idempotent)
    private static let introspect = Statement(
        name: "live_service_account",
        sql:
            "SELECT client, client_id, token_salt, created_at, db_now, since FROM postern.live_service_account($1, $2, $3)",
        effect: .readOnly)
    private static let revoke = Statement(
        name: "revoke_service_token", sql: "SELECT postern.revoke_service_token($1, $2, $3, $4, $5)",
        effect: .idempotent)
}

/// A service account that may act.
public struct LiveServiceAccount: Sendable {
    /// `sub`.
    public let id: UUIDValue
    /// The client's row key.
    public let client: UUIDValue
    /// `client_id`.
    public let clientID: String
    /// Keys its reference access tokens, 16 bytes.
    public let tokenSalt: [UInt8]
    /// Seconds since the epoch; its reference tokens count their times from here.
    public let createdAt: Double
    /// The database clock, seconds since the epoch.
    public let now: Double
    /// Tokens with an earlier `iat` are dead, seconds since the epoch.
    public let since: Double
}
