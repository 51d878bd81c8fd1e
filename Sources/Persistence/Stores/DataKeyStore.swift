/// Data keys: made on first use, moved to the newest line of the key file, and what version 0 left without one.
public struct DataKeyStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The data key for new secrets, made when the realm has none yet. Of any number of servers that make one at once,
    /// all get the same.
    /// - Throws: ``StoreError``, or ``KeyringError`` when the key file lacks the line that seals it.
    public func current(_ purpose: DataKey.Purpose, realm: UUIDValue, keyring: Keyring) async throws -> DataKey {
        let existing = try await database.query(
            Self.current, [.uuid(realm), .text(purpose.rawValue)]
        ) { (row) throws(StoreError) in try row.dataKey(purpose) }
        if let existing = existing.first { return try keyring.open(existing, realm: realm) }
        return try await add(keyring.makeDataKey(purpose, realm: realm), realm: realm, derivedFrom: nil, keyring)
    }

    /// The data key that holds what `lines` gave version 0 for codes; made when the realm has none for the first of
    /// them.
    func derived(
        _ purpose: DataKey.Purpose, from lines: [ServerKey], realm: UUIDValue, keyring: Keyring
    ) async throws -> DataKey {
        let key = try keyring.makeDataKey(purpose, realm: realm, derivedFrom: lines)
        return try await add(key, realm: realm, derivedFrom: lines[0].id, keyring)
    }

    private func add(
        _ key: SealedDataKey, realm: UUIDValue, derivedFrom line: [UInt8]?, _ keyring: Keyring
    ) async throws -> DataKey {
        let inForce = try await database.query(
            Self.add,
            [
                .uuid(realm), .text(key.purpose.rawValue), .uuid(key.id), line.map { .bytes($0) } ?? .null,
                .bytes(keyring.newest.id), .bytes(key.sealed),
            ]
        ) { (row) throws(StoreError) in try row.dataKey(key.purpose) }
        guard let inForce = inForce.first else { throw StoreError.malformedResult }
        return try keyring.open(inForce, realm: realm)
    }

    /// Re-seals up to `limit` data keys of all realms under the newest line. Safe to run concurrently.
    /// - Returns: how many were looked at: fewer than `limit` when no other is left.
    public func reseal(limit: Int32, keyring: Keyring) async throws -> Int {
        let found = try await database.query(
            Self.toReseal, [.bytes(keyring.newest.id), .int(limit)]
        ) { (row) throws(StoreError) -> (realm: UUIDValue, key: SealedDataKey) in
            guard let purpose = DataKey.Purpose(rawValue: try row.text(2)) else { throw .malformedResult }
            return (
                realm: try row.uuid(0),
                key: SealedDataKey(id: try row.uuid(1), purpose: purpose, sealed: try row.bytes(3))
            )
        }
        for (realm, key) in found {
            let resealed = try keyring.reseal(key, realm: realm)
            _ = try await database.query(
                Self.reseal,
                [
                    .uuid(realm), .uuid(key.id), .bytes(key.sealed), .bytes(keyring.newest.id), .bytes(resealed.sealed),
                ]
            ) { (row) throws(StoreError) in try row.bool(0) }
        }
        return found.count
    }

    /// Something long-lived that version 0 sealed or keyed directly under a line.
    public struct Version0Secret: Sendable {
        /// What it is.
        public let purpose: DataKey.Purpose
        /// The tenant.
        public let realm: UUIDValue
        /// The `kid` of a signing key; else the user.
        public let name: String
        /// The row a seed is sealed for, or the test identity's user.
        public let row: UUIDValue?
        /// The seal of a signing key or seed.
        public let sealed: [UInt8]
    }

    /// Up to `limit` of each kind.
    public func version0Secrets(limit: Int32) async throws(StoreError) -> [Version0Secret] {
        try await database.query(Self.version0Secrets, [.int(limit)]) { (row) throws(StoreError) in
            guard let purpose = DataKey.Purpose(rawValue: try row.text(0)) else { throw .malformedResult }
            return Version0Secret(
                purpose: purpose, realm: try row.uuid(1), name: try row.text(2), row: try row.uuidOrNil(3),
                sealed: try row.bytesOrNil(4) ?? [])
        }
    }

    /// How many connections servers of version 0 have, which cannot read what is under a data key.
    public func version0Connections() async throws(StoreError) -> Int {
        try await database.query(Self.version0Connections, []) { (row) throws(StoreError) in Int(try row.int(0)) }
            .first ?? 0
    }

    /// Puts a signing key under a data key. - Returns: `false` when the row changed meanwhile.
    public func moveSigningKey(_ secret: Version0Secret, sealed: [UInt8]) async throws(StoreError) -> Bool {
        try await moved(
            Self.moveSigningKey, [.uuid(secret.realm), .text(secret.name), .bytes(secret.sealed), .bytes(sealed)])
    }

    /// Puts a seed under a data key, and names the one that holds the key of the recovery codes made with it: the line
    /// of the seed gave it. - Returns: `false` when the row changed meanwhile.
    public func moveTOTPSeed(
        _ secret: Version0Secret, sealed: [UInt8], keyring: Keyring
    ) async throws -> Bool {
        guard let factor = secret.row, let line = keyring.key(id: secret.sealed.prefix(4)) else {
            throw KeyringError.unknownKey
        }
        let recovery = try await derived(.recoveryCode, from: [line], realm: secret.realm, keyring: keyring)
        return try await moved(
            Self.moveTOTPSeed,
            [.uuid(secret.realm), .uuid(factor), .bytes(secret.sealed), .bytes(sealed), .uuid(recovery.id)])
    }

    /// Names the data key of a test identity's code. Version 0 did not say which line it had used: the data key holds
    /// what every line of the file gave. - Returns: `false` when the row changed meanwhile.
    public func moveTestCode(_ secret: Version0Secret, keyring: Keyring) async throws -> Bool {
        guard let user = secret.row else { throw StoreError.malformedResult }
        let key = try await derived(.testCode, from: keyring.keys, realm: secret.realm, keyring: keyring)
        return try await moved(Self.moveTestCode, [.uuid(secret.realm), .uuid(user), .uuid(key.id)])
    }

    private func moved(_ statement: Statement, _ parameters: [Parameter]) async throws(StoreError) -> Bool {
        try await database.query(statement, parameters) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    private static let current = Statement(
        name: "current_data_key", sql: "SELECT id, sealed FROM postern.current_data_key($1, $2)", effect: .readOnly)
    private static let add = Statement(
        name: "add_data_key", sql: "SELECT id, sealed FROM postern.add_data_key($1, $2, $3, $4, $5, $6)",
        effect: .idempotent)
    private static let toReseal = Statement(
        name: "data_keys_to_reseal",
        sql: "SELECT realm_id, id, purpose, sealed FROM postern.data_keys_to_reseal($1, $2)", effect: .readOnly)
    private static let reseal = Statement(
        name: "reseal_data_key", sql: "SELECT postern.reseal_data_key($1, $2, $3, $4, $5)", effect: .idempotent)
    private static let version0Secrets = Statement(
        name: "secrets_without_data_key",
        sql: "SELECT kind, realm_id, name, row_id, sealed FROM postern.secrets_without_data_key($1)", effect: .readOnly)
    private static let version0Connections = Statement(
        name: "version_0_connections", sql: "SELECT postern.version_0_connections()", effect: .readOnly)
    private static let moveSigningKey = Statement(
        name: "move_signing_key", sql: "SELECT postern.move_signing_key($1, $2, $3, $4)", effect: .idempotent)
    private static let moveTOTPSeed = Statement(
        name: "move_totp_seed", sql: "SELECT postern.move_totp_seed($1, $2, $3, $4, $5)", effect: .idempotent)
    private static let moveTestCode = Statement(
        name: "move_test_code", sql: "SELECT postern.move_test_code($1, $2, $3)", effect: .idempotent)
}

extension Row {
    fileprivate borrowing func dataKey(_ purpose: DataKey.Purpose) throws(StoreError) -> SealedDataKey {
        SealedDataKey(id: try uuid(0), purpose: purpose, sealed: try bytes(1))
    }
}
