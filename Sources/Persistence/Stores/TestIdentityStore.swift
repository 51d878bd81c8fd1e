/// Test identities: the codes that administrators put and no server has keyed yet.
public struct TestIdentityStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A code in clear, for the moment between SQL and the first server that sees it.
    public struct PendingCode: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The test identity.
        public let user: UUIDValue
        /// The folded address.
        public let emailKey: String
        /// The code.
        public let code: String
    }

    /// The data keys of codes.
    public var dataKeys: DataKeyStore { DataKeyStore(database) }

    /// The codes that wait, of all realms.
    public func pending() async throws(StoreError) -> [PendingCode] {
        try await database.all(Self.calls.pending)
    }

    /// Stores the keyed form of a code and forgets the code.
    /// - Parameters:
    ///   - salt: 16 random bytes.
    ///   - keyed: HMAC of the code under the data key, 32 bytes.
    public func store(
        _ pending: PendingCode, salt: [UInt8], keyed: [UInt8], under key: DataKey
    ) async throws(StoreError) {
        _ = try await database.one(
            Self.calls.store,
            [
                "realm": pending.realm, "user": pending.user, "code": pending.code, "salt": salt, "keyed": keyed,
                "data_key": key.id,
            ])
    }

    struct Calls: Sendable {
        let pending = FunctionCall<PendingCode>("pending_test_codes", effect: .readOnly) { (row) throws(StoreError) in
            PendingCode(
                realm: try row("realm_id"), user: try row("user_id"), emailKey: try row("email_key"),
                code: try row("code"))
        }
        let store = FunctionCall<Bool>(
            "store_test_code", ["realm", "user", "code", "salt", "keyed", "data_key"], effect: .idempotent)
    }
    static let calls = Calls()
}
