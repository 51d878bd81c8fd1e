/// Signing keys of a realm, private halves sealed.
public struct SigningKeyStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Adds a realm's first key of an algorithm unless another node was faster.
    /// - Returns: the key in force as JSON (`kid`, `alg`, `public_jwk`, `sealed_private`, `activates_at`, `retires_at`).
    public func add(
        realm: UUIDValue, kid: String, alg: String, publicJWK: String, sealed: [UInt8]
    ) async throws(StoreError) -> String {
        let rows = try await database.query(
            Self.add, [.uuid(realm), .text(kid), .text(alg), .json(publicJWK), .bytes(sealed)]
        ) { (row) throws(StoreError) in try row.text(0) }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    private static let add = Statement(
        name: "add_signing_key", sql: "SELECT postern.add_signing_key($1, $2, $3, $4, $5)::text", effect: .idempotent)
}
