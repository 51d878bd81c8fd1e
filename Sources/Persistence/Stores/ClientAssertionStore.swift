/// Client assertions that were used (RFC 7523 §3, `jti`).
public struct ClientAssertionStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// Uses an assertion up. - Returns: `false` when it was used before.
    /// - Parameters:
    ///   - id: SHA-256 over client and `jti`, 32 bytes.
    ///   - expiresAt: until when it must be remembered, seconds since the epoch.
    public func spend(realm: UUIDValue, id: [UInt8], expiresAt: Double) async throws(StoreError) -> Bool {
        try await database.one(Self.calls.spend, ["realm": realm, "id": id, "expires": expiresAt])
    }

    /// Makes an assertion unused again. Only the request that has used it up may do so.
    public func giveBack(realm: UUIDValue, id: [UInt8]) async throws(StoreError) {
        _ = try await database.one(Self.calls.giveBack, ["realm": realm, "id": id])
    }

    struct Calls: Sendable {
        let spend = FunctionCall<Bool>("spend_assertion", ["realm", "id", "expires"], effect: .once)
        let giveBack = FunctionCall<Void>("give_back_assertion", ["realm", "id"], effect: .idempotent)
    }
    static let calls = Calls()
}
