/// Authorization codes whose request asked for a proven address, and what a session remembers of it.
public struct IdentityCodeStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// Whose address was proven, and the session that the code opened. Times are seconds since the epoch.
    public struct Redeemed: Sendable {
        /// The user, `sub`.
        public let user: UUIDValue
        /// Scope names.
        public let scope: [String]
        /// Authentication methods (RFC 8176).
        public let amr: [String]
        /// Authentication context class.
        public let acr: String?
        /// When the user signed in.
        public let authTime: Double
        /// The database clock.
        public let now: Double
        /// Absolute end of the session.
        public let sessionExpiresAt: Double
        /// `email` or `phone`.
        public let kind: String
        /// How it was proven: `OTP` or `MAGIC_LINK`.
        public let method: String
        /// The identifier's id.
        public let identifier: UUIDValue
        /// The address or number, as the account has it.
        public let value: String
        /// When the account got it.
        public let addedAt: Double
        /// When it was last proven.
        public let provedAt: Double
    }

    /// The outcome of a presented code.
    public enum Outcome: Sendable {
        case redeemed(Redeemed)
        /// The reason is for logs.
        case refused(String)
    }

    /// Consumes a code and opens the session, in one statement. Repeated with the same session it says the same again.
    /// - Parameter session: as for ``AuthorizationCodeStore/redeem(_:session:permits:)``.
    public func redeem(
        _ presented: AuthorizationCodeStore.Presented, session: NewSession, permits: PermitRequest
    ) async throws(StoreError) -> (Outcome?, PermitVerdict) {
        let code: Arguments = [
            "code_hash": presented.codeHash, "redirect_uri": presented.redirectURI,
            "challenge": presented.codeChallenge,
        ]
        return try await database.one(
            Self.calls.redeem,
            session.arguments(
                realm: presented.realm, client: presented.client, permission: AuthorizationCodeStore.permission,
                permits: permits) + code)
    }

    /// What was proven for a session; `nil` for a session that no such code opened.
    public func proof(
        realm: UUIDValue, session: UUIDValue
    ) async throws(StoreError) -> (value: String, method: String)? {
        try await database.one(Self.calls.proof, ["realm": realm, "session": session])
    }

    struct Calls: Sendable {
        let redeem = FunctionCall<(Outcome?, PermitVerdict)>(
            "redeem_identity_code",
            NewSession.signInArguments + ["code_hash", "redirect_uri", "challenge"], effect: .idempotent
        ) { columns in
            let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
            let redeemed = columns.record { (row) throws(StoreError) in
                Redeemed(
                    user: try row("user_id"), scope: try row("scope"), amr: try row("amr"), acr: try row("acr"),
                    authTime: try row("auth_time"), now: try row("db_now"),
                    sessionExpiresAt: try row("session_expires_at"), kind: try row("kind"), method: try row("method"),
                    identifier: try row("identifier"), value: try row("value"), addedAt: try row("added_at"),
                    provedAt: try row("proved_at"))
            }
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "ok": .redeemed(try redeemed(row))
                default: .refused(try row[reason] ?? "refused")
                }
            }
        }
        let proof = FunctionCall<(value: String, method: String)?>(
            "session_proof", ["realm", "session"], effect: .readOnly
        ) { columns in
            let value = columns("value", String?.self), method = columns("method", String?.self)
            return { (row) throws(StoreError) in
                guard let value = try row[value], let method = try row[method] else { return nil }
                return (value, method)
            }
        }
    }
    static let calls = Calls()
}
