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
        let existing = try await database.first(Self.calls.current, ["realm": realm, "purpose": purpose.rawValue])
        if let (id, sealed) = existing {
            return try keyring.open(SealedDataKey(id: id, purpose: purpose, sealed: sealed), realm: realm)
        }
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
        let (id, sealed) = try await database.one(
            Self.calls.add,
            [
                "realm": realm, "purpose": key.purpose.rawValue, "id": key.id, "derived_from": line,
                "file_key": keyring.newest.id, "sealed": key.sealed,
            ])
        return try keyring.open(SealedDataKey(id: id, purpose: key.purpose, sealed: sealed), realm: realm)
    }

    /// Re-seals up to `limit` data keys of all realms under the newest line. Safe to run concurrently.
    /// - Returns: how many were looked at: fewer than `limit` when no other is left.
    public func reseal(limit: Int32, keyring: Keyring) async throws -> Int {
        let found = try await database.all(Self.calls.toReseal, ["newest": keyring.newest.id, "limit": limit])
        for (realm, key) in found {
            let resealed = try keyring.reseal(key, realm: realm)
            _ = try await database.one(
                Self.calls.reseal,
                [
                    "realm": realm, "id": key.id, "former": key.sealed, "file_key": keyring.newest.id,
                    "sealed": resealed.sealed,
                ])
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
        try await database.all(Self.calls.version0Secrets, ["limit": limit])
    }

    /// How many connections servers of version 0 have, which cannot read what is under a data key.
    public func version0Connections() async throws(StoreError) -> Int {
        try await database.one(Self.calls.version0Connections)
    }

    /// Puts a signing key under a data key. - Returns: `false` when the row changed meanwhile.
    public func moveSigningKey(_ secret: Version0Secret, sealed: [UInt8]) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.moveSigningKey,
            ["realm": secret.realm, "kid": secret.name, "former": secret.sealed, "sealed": sealed])
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
        return try await database.one(
            Self.calls.moveTOTPSeed,
            [
                "realm": secret.realm, "factor": factor, "former": secret.sealed, "sealed": sealed,
                "recovery_key": recovery.id,
            ])
    }

    /// Names the data key of a test identity's code. Version 0 did not say which line it had used: the data key holds
    /// what every line of the file gave. - Returns: `false` when the row changed meanwhile.
    public func moveTestCode(_ secret: Version0Secret, keyring: Keyring) async throws -> Bool {
        guard let user = secret.row else { throw StoreError.malformedResult }
        let key = try await derived(.testCode, from: keyring.keys, realm: secret.realm, keyring: keyring)
        return try await database.one(
            Self.calls.moveTestCode, ["realm": secret.realm, "user": user, "data_key": key.id])
    }
}

extension DataKey.Purpose: ColumnValue {}

extension DataKeyStore {
    struct Calls: Sendable {
        let current = FunctionCall("current_data_key", ["realm", "purpose"], effect: .readOnly, record: idAndSeal)
        let add = FunctionCall(
            "add_data_key", ["realm", "purpose", "id", "derived_from", "file_key", "sealed"], effect: .idempotent,
            record: idAndSeal)
        let toReseal = FunctionCall<(realm: UUIDValue, key: SealedDataKey)>(
            "data_keys_to_reseal", ["newest", "limit"], effect: .readOnly
        ) { (row) throws(StoreError) in
            (
                realm: try row("realm_id"),
                key: SealedDataKey(id: try row("id"), purpose: try row("purpose"), sealed: try row("sealed"))
            )
        }
        let reseal = FunctionCall<Bool>(
            "reseal_data_key", ["realm", "id", "former", "file_key", "sealed"], effect: .idempotent)
        let version0Secrets = FunctionCall<Version0Secret>(
            "secrets_without_data_key", ["limit"], effect: .readOnly
        ) { (row) throws(StoreError) in
            Version0Secret(
                purpose: try row("kind"), realm: try row("realm_id"), name: try row("name"), row: try row("row_id"),
                sealed: try row("sealed") as [UInt8]? ?? [])
        }
        let version0Connections = FunctionCall<Int>("version_0_connections", effect: .readOnly)
        let moveSigningKey = FunctionCall<Bool>(
            "move_signing_key", ["realm", "kid", "former", "sealed"], effect: .idempotent)
        let moveTOTPSeed = FunctionCall<Bool>(
            "move_totp_seed", ["realm", "factor", "former", "sealed", "recovery_key"], effect: .idempotent)
        let moveTestCode = FunctionCall<Bool>("move_test_code", ["realm", "user", "data_key"], effect: .idempotent)

        private static func idAndSeal(_ row: inout RecordReader) throws(StoreError) -> (id: UUIDValue, sealed: [UInt8])
        {
            (id: try row("id"), sealed: try row("sealed"))
        }
    }
    static let calls = Calls()
}
