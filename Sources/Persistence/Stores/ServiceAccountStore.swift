/// Service accounts: what their tokens are made from, and whether one is still good.
public struct ServiceAccountStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// The outcome of a token request.
    public enum Outcome: Sendable {
        /// Times are seconds since the epoch by the database clock.
        case granted(account: UUIDValue, tokenSalt: [UInt8], createdAt: Double, now: Double)
        /// The client may no longer act for itself.
        case refused
    }

    /// Takes permits and names the client's service account. Repeating it costs a permit and nothing else.
    public func grant(
        realm: UUIDValue, client: UUIDValue, source: String, proof: ProofUse?, permits: PermitRequest
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let caller = Caller(
            realm: realm, client: client, permission: "gt:client_credentials", source: source, proof: proof)
        return try await database.one(Self.calls.grant, caller.arguments + permits.arguments)
    }

    /// The account behind an access token while it may act, else `nil`.
    /// - Parameters:
    ///   - jti: the token's 16-byte identifier, looked up among those revoked.
    ///   - proof: of the key that the token is bound to; it is used up.
    public func live(
        realm: UUIDValue, account: UUIDValue, jti: [UInt8], proof: ProofUse? = nil
    ) async throws(StoreError) -> LiveServiceAccount? {
        guard let proof else {
            return try await database.first(Self.calls.live, ["realm": realm, "account": account, "jti": jti])
        }
        return try await database.first(
            Self.calls.liveByProof,
            ["realm": realm] + proof.arguments(in: realm) + ["account": account, "jti": jti])
    }

    /// Ends one access token of the account, which must be `client`'s.
    /// - Parameter expiresAt: seconds since the epoch.
    public func revoke(
        realm: UUIDValue, client: UUIDValue, account: UUIDValue, jti: [UInt8], expiresAt: Double
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.revoke,
            ["realm": realm, "client": client, "account": account, "jti": jti, "expires": expiresAt])
    }
}

/// A service account that may act.
public struct LiveServiceAccount: Sendable {
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

extension ServiceAccountStore {
    struct Calls: Sendable {
        let grant = FunctionCall<(Outcome?, PermitVerdict)>(
            "client_credentials", [Caller.argument, PermitRequest.argument], effect: .idempotent
        ) { columns in
            let outcome = columns("outcome", String.self)
            let granted = columns.record { (row) throws(StoreError) in
                Outcome.granted(
                    account: try row("account"), tokenSalt: try row("token_salt"), createdAt: try row("created_at"),
                    now: try row("db_now"))
            }
            return columns.limited { (row) throws(StoreError) in
                try row[outcome] == "ok" ? granted(row) : .refused
            }
        }
        let live = FunctionCall<LiveServiceAccount>(
            "live_service_account", ["realm", "account", "jti"], effect: .readOnly, record: live)
        let liveByProof = FunctionCall<LiveServiceAccount>(
            "live_service_account_by_proof", ["realm", ProofUse.argument, "account", "jti"], effect: .idempotent,
            record: live)

        private static func live(_ row: inout RecordReader) throws(StoreError) -> LiveServiceAccount {
            LiveServiceAccount(
                client: try row("client"), clientID: try row("client_id"), tokenSalt: try row("token_salt"),
                createdAt: try row("created_at"), now: try row("db_now"), since: try row("since"))
        }

        let revoke = FunctionCall<Bool>(
            "revoke_service_token", ["realm", "client", "account", "jti", "expires"], effect: .idempotent)
    }
    static let calls = Calls()
}
