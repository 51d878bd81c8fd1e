/// Signing keys of a realm, private halves sealed. A key travels as JSON (`kid`, `alg`, `public_jwk`, `sealed_private`,
/// `sealed_data_key`, `for_realm`, `activates_at`, `retires_at`).
public struct SigningKeyStore: Sendable {
    private let database: Database

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
        try await database.one(
            Self.calls.add,
            [
                "realm": realm, "kid": kid, "alg": alg, "public_jwk": Parameter.json(publicJWK), "sealed": sealed,
                "for_realm": forRealm,
            ])
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
        try await database.one(
            Self.calls.rotate,
            [
                "realm": realm, "kid": kid, "alg": alg, "public_jwk": Parameter.json(publicJWK), "sealed": sealed,
                "now": now, "for_realm": forRealm, "request": requested, "source": source,
            ])
    }

    /// Rotations that administrators requested, in any realm, and that no server has carried out yet.
    public func requests() async throws(StoreError) -> [(realm: UUIDValue, alg: String)] {
        try await database.all(Self.calls.requests)
    }

    struct Calls: Sendable {
        let add = FunctionCall<String>(
            "add_signing_key", ["realm", "kid", "alg", "public_jwk", "sealed", "for_realm"], effect: .idempotent)
        let rotate = FunctionCall<String?>(
            "rotate_signing_key",
            ["realm", "kid", "alg", "public_jwk", "sealed", "now", "for_realm", "request", "source"], effect: .once)
        let requests = FunctionCall<(realm: UUIDValue, alg: String)>(
            "signing_key_requests", effect: .readOnly
        ) { (row) throws(StoreError) in (try row("realm_id"), try row("alg"))
        }
    }
    static let calls = Calls()
}
