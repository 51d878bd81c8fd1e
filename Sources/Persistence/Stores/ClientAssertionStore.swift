/// Client assertions that were used (RFC 7523 §3, `jti`).
public struct ClientAssertionStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Uses an assertion up. - Returns: `false` when it was used before.
    /// - Parameters:
    ///   - id: SHA-256 over client and `jti`, 32 bytes.
    ///   - expiresAt: until when it must be remembered, seconds since the epoch.
    public func spend(realm: UUIDValue, id: [UInt8], expiresAt: Double) async throws(StoreError) -> Bool {
        try await database.query(Self.spend, [.uuid(realm), .bytes(id), .double(expiresAt)]) {
            (row) throws(StoreError) in try row.bool(0)
        }.first ?? false
    }

    private static let spend = Statement(
        name: "spend_assertion", sql: "SELECT postern.spend_assertion($1, $2, $3)", effect: .once)
}
