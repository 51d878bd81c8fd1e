public import Persistence

/// The fixed codes of test numbers (docs/decisions/0015).
public struct TestNumberCodes: Sendable {
    private let store: TestIdentityStore
    private let keyring: Keyring

    public init(store: TestIdentityStore, keyring: Keyring) {
        self.store = store
        self.keyring = keyring
    }

    /// What the database may hold of a code for the number of a transaction. A code that no server has keyed yet is
    /// keyed now, so that it works at once.
    func candidates(_ code: TypedCode, _ facts: PossessionFacts, _ realm: Realm) async throws -> [[UInt8]] {
        guard let phone = facts.phone, let key = try await key(of: facts, phone, realm.id) else { return [] }
        return [OneTimeCode.keyed(code.text, realm: realm.id, addressKey: phone, under: key)]
    }

    private func key(of facts: PossessionFacts, _ phone: String, _ realm: UUIDValue) async throws -> DataKey? {
        if let pending = facts.testCode {
            return try await store.keep(
                .init(realm: realm, user: nil, addressKey: phone, code: pending), keyring: keyring)
        }
        return try facts.testKey.map { try keyring.open($0, realm: realm) }
    }
}
