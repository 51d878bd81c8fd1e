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
        try await database.query(Self.pendingCodes, []) { (row) throws(StoreError) in
            PendingCode(
                realm: try row.uuid(0), user: try row.uuid(1), emailKey: try row.text(2), code: try row.text(3))
        }
    }

    /// Stores the keyed form of a code and forgets the code.
    /// - Parameters:
    ///   - salt: 16 random bytes.
    ///   - keyed: HMAC of the code under the data key, 32 bytes.
    public func store(
        _ pending: PendingCode, salt: [UInt8], keyed: [UInt8], under key: DataKey
    ) async throws(StoreError) {
        _ = try await database.query(
            Self.storeCode,
            [
                .uuid(pending.realm), .uuid(pending.user), .text(pending.code), .bytes(salt), .bytes(keyed),
                .uuid(key.id),
            ]
        ) { (row) throws(StoreError) in try row.bool(0) }
    }

    private static let pendingCodes = Statement(
        name: "pending_test_codes", sql: "SELECT realm_id, user_id, email_key, code FROM postern.pending_test_codes()",
        effect: .readOnly)
    private static let storeCode = Statement(
        name: "store_test_code", sql: "SELECT postern.store_test_code($1, $2, $3, $4, $5, $6)", effect: .idempotent)
}

extension UUIDValue {
    /// Whether it is the id of a test identity: a UUID of version 8, where every other user has version 4
    /// (`postern.is_test_identity`).
    public var isTestIdentity: Bool { version == 8 }
}
