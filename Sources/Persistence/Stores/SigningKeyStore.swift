/// Signing keys of a realm, private halves sealed. A key travels as JSON (`kid`, `alg`, `public_jwk`, `sealed_private`,
/// `sealed_data_key`, `for_realm`, `activates_at`, `retires_at`).
public struct SigningKeyStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The data keys of private halves.
    public var dataKeys: DataKeyStore { DataKeyStore(database) }

    /// Adds a realm's first key unless another node was faster. - Returns: the key in force.
    /// - Parameter forRealm: whether it is the realm's own, or one for clients that ask for its algorithm.
    public func add(
        realm: UUIDValue, kid: String, alg: String, publicJWK: String, sealed: [UInt8], forRealm: Bool
    ) async throws(StoreError) -> String {
        let rows = try await database.query(
            Self.add, [.uuid(realm), .text(kid), .text(alg), .json(publicJWK), .bytes(sealed), .bool(forRealm)]
        ) { (row) throws(StoreError) in try row.text(0) }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// Publishes the next key of an algorithm, unless one is waiting already. Safe to repeat.
    /// - Parameters:
    ///   - now: sign with it at once.
    ///   - requested: do it only if an administrator's request is there, and take that away.
    /// - Returns: the next key; `nil` when there was no request.
    public func rotate(
        realm: UUIDValue, kid: String, alg: String, publicJWK: String, sealed: [UInt8], now: Bool, forRealm: Bool,
        requested: Bool, source: String
    ) async throws(StoreError) -> String? {
        try await database.query(
            Self.rotate,
            [
                .uuid(realm), .text(kid), .text(alg), .json(publicJWK), .bytes(sealed), .bool(now), .bool(forRealm),
                .bool(requested), .text(source),
            ]
        ) { (row) throws(StoreError) in try row.textOrNil(0) }.first ?? nil
    }

    /// Rotations that administrators requested, in any realm, and that no server has carried out yet.
    public func requests() async throws(StoreError) -> [(realm: UUIDValue, alg: String)] {
        try await database.query(Self.requests, []) { (row) throws(StoreError) in (try row.uuid(0), try row.text(1)) }
    }

    private static let add = Statement(
        name: "add_signing_key", sql: "SELECT postern.add_signing_key($1, $2, $3, $4, $5, $6)::text",
        effect: .idempotent)
    private static let rotate = Statement(
        name: "rotate_signing_key",
        sql: "SELECT postern.rotate_signing_key($1, $2, $3, $4, $5, $6, $7, $8, $9)::text", effect: .once)
    private static let requests = Statement(
        name: "signing_key_requests", sql: "SELECT realm_id, alg FROM postern.signing_key_requests()",
        effect: .readOnly)
}
