/// Data keys: made on first use, moved to the newest line of the key file.
public struct DataKeyStore: Sendable {
    private let database: Database

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
        return try await add(keyring.makeDataKey(purpose, realm: realm), realm: realm, keyring)
    }

    private func add(_ key: SealedDataKey, realm: UUIDValue, _ keyring: Keyring) async throws -> DataKey {
        let (id, sealed) = try await database.one(
            Self.calls.add,
            [
                "realm": realm, "purpose": key.purpose.rawValue, "id": key.id, "file_key": keyring.newest.id,
                "sealed": key.sealed,
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
}

extension DataKey.Purpose: ColumnValue {}

extension DataKeyStore {
    struct Calls: Sendable {
        let current = FunctionCall("current_data_key", ["realm", "purpose"], effect: .readOnly, record: idAndSeal)
        let add = FunctionCall(
            "add_data_key", ["realm", "purpose", "id", "file_key", "sealed"], effect: .idempotent, record: idAndSeal)
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
        private static func idAndSeal(_ row: inout RecordReader) throws(StoreError) -> (id: UUIDValue, sealed: [UInt8])
        {
            (id: try row("id"), sealed: try row("sealed"))
        }
    }
    static let calls = Calls()
}
