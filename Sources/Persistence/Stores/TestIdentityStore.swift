/// Test identities and test numbers: the codes that administrators put and no server has keyed yet.
public struct TestIdentityStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A code in clear, for the moment between SQL and the first server that sees it.
    public struct PendingCode: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The test identity; `nil`: a test number.
        public let user: UUIDValue?
        /// The folded address, or the number.
        public let addressKey: String
        /// The code.
        public let code: String

        /// - Parameter user: `nil` for a test number.
        package init(realm: UUIDValue, user: UUIDValue?, addressKey: String, code: String) {
            self.realm = realm
            self.user = user
            self.addressKey = addressKey
            self.code = code
        }
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
        let code: Arguments = ["code": pending.code, "salt": salt, "keyed": keyed, "data_key": key.id]
        if let user = pending.user {
            _ = try await database.one(Self.calls.store, ["realm": pending.realm, "user": user] + code)
        } else {
            _ = try await database.one(
                Self.calls.storeOfNumber, ["realm": pending.realm, "phone": pending.addressKey] + code)
        }
    }

    struct Calls: Sendable {
        let pending = FunctionCall<PendingCode>("pending_test_codes", effect: .readOnly) { (row) throws(StoreError) in
            PendingCode(
                realm: try row("realm_id"), user: try row("user_id"), addressKey: try row("address_key"),
                code: try row("code"))
        }
        let store = FunctionCall<Bool>(
            "store_test_code", ["realm", "user", "code", "salt", "keyed", "data_key"], effect: .idempotent)
        let storeOfNumber = FunctionCall<Bool>(
            "store_test_number_code", ["realm", "phone", "code", "salt", "keyed", "data_key"], effect: .idempotent)
    }
    static let calls = Calls()
}
