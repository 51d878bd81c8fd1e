/// The tokens of proven addresses: the authorization code that they are redeemed for, and the access token.
public struct AddressTokenStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What was proven. Times are seconds since the epoch.
    public struct Proof: Sendable {
        /// `sub`: stable for the client and the address.
        public let subject: UUIDValue
        /// `email` or `phone`.
        public let kind: String
        /// The address, as it was sealed for the client.
        public let sealedAddress: [UInt8]
        /// Authentication methods (RFC 8176).
        public let amr: [String]
        /// Authentication context class.
        public let acr: String
        /// When the address was proven.
        public let authTime: Double
        /// The database clock.
        public let now: Double
    }

    /// What an authorization code was issued for.
    public struct Redeemed: Sendable {
        /// What was proven.
        public let proof: Proof
        /// Scope names.
        public let scope: [String]
        /// `aud` of the access token.
        public let resources: [String]
        /// Of the authorization request.
        public let nonce: String?
        /// End of the tokens, seconds since the epoch.
        public let expiresAt: Double
    }

    /// The outcome of a presented code.
    public enum Outcome: Sendable {
        case redeemed(Redeemed)
        /// A resource that the code does not hold; the code can be used.
        case invalidTarget
        /// The reason is for logs.
        case refused(String)
    }

    /// What a live access token stands for.
    public struct Live: Sendable {
        /// What was proven.
        public let proof: Proof
        /// `client_id`.
        public let clientID: String
        /// The client's row key.
        public let client: UUIDValue
        /// 16 random bytes that key the access token.
        public let tokenSalt: [UInt8]
    }

    /// Consumes a code, in one statement. Repeated with the same session it says the same again, so a lost answer is
    /// asked for once more.
    /// - Parameter session: what the access token will refer to.
    public func redeem(
        _ presented: AuthorizationCodeStore.Presented, session: UUIDValue, tokenSalt: [UInt8], source: String,
        permits: PermitRequest
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let caller = Caller(
            realm: presented.realm, client: presented.client, permission: AuthorizationCodeStore.permission,
            source: source, proof: presented.proof)
        let code: Arguments = [
            "session": session, "token_salt": tokenSalt, "code_hash": presented.codeHash,
            "redirect_uri": presented.redirectURI, "challenge": presented.codeChallenge,
            "resource": presented.resources,
        ]
        return try await database.one(Self.calls.redeem, caller.arguments + permits.arguments + code)
    }

    /// - Returns: `nil` when the token has expired or was revoked.
    /// - Parameter proof: of the key that the token is bound to; it is used up.
    public func live(
        realm: UUIDValue, session: UUIDValue, proof: ProofUse? = nil
    ) async throws(StoreError) -> Live? {
        guard let proof else { return try await database.first(Self.calls.live, ["realm": realm, "session": session]) }
        return try await database.first(
            Self.calls.liveByProof, ["realm": realm] + proof.arguments(in: realm) + ["session": session])
    }

    /// Ends the access token of a client.
    public func revoke(realm: UUIDValue, client: UUIDValue, session: UUIDValue) async throws(StoreError) {
        _ = try await database.one(Self.calls.revoke, ["realm": realm, "client": client, "session": session])
    }
}

extension AddressTokenStore {
    struct Calls: Sendable {
        let redeem = FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_address_code",
            [
                Caller.argument, PermitRequest.argument, "session", "token_salt", "code_hash", "redirect_uri",
                "challenge", "resource",
            ], effect: .idempotent
        ) { columns in
            let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
            let redeemed = columns.record { (row) throws(StoreError) in
                Redeemed(
                    proof: try proof(&row), scope: try row("scope"), resources: try row("resource"),
                    nonce: try row("nonce"), expiresAt: try row("expires_at"))
            }
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "ok": .redeemed(try redeemed(row))
                case "invalid_target": .invalidTarget
                default: .refused(try row[reason] ?? "refused")
                }
            }
        }
        let live = FunctionCall<Live>(
            "introspect_address", ["realm", "session"], effect: .readOnly, record: live)
        let liveByProof = FunctionCall<Live>(
            "introspect_address_by_proof", ["realm", ProofUse.argument, "session"], effect: .idempotent, record: live)

        private static func live(_ row: inout RecordReader) throws(StoreError) -> Live {
            Live(
                proof: try proof(&row), clientID: try row("client_id"), client: try row("client"),
                tokenSalt: try row("token_salt"))
        }

        let revoke = FunctionCall<Bool>(
            "revoke_address_token", ["realm", "client", "session"], effect: .idempotent)

        private static func proof(_ row: inout RecordReader) throws(StoreError) -> Proof {
            Proof(
                subject: try row("subject"), kind: try row("kind"), sealedAddress: try row("sealed_address"),
                amr: try row("amr"), acr: try row("acr"), authTime: try row("auth_time"), now: try row("db_now"))
        }
    }
    static let calls = Calls()
}
