import Encoding
import Crypto
public import Persistence

/// Signs the calls that this server makes to operators' endpoints, so that no secret has to be shared: the endpoint
/// verifies them by the realm's published keys.
public struct HookTokens: Sendable {
    private let keys: SigningKeys
    private let realms: RealmDirectory
    private let clock: @Sendable () -> Double

    /// Seconds that a token is good for.
    private static let lifetime = 60.0

    /// Signs with the realm's own key. - Parameter clock: seconds since the epoch.
    public init(keys: SigningKeys, realms: RealmDirectory, clock: @escaping @Sendable () -> Double) {
        self.keys = keys
        self.realms = realms
        self.clock = clock
    }

    /// A JWS of type `postern-hook+jwt` with `iss`, `aud`, `iat`, `exp`, `jti` and `body`.
    /// - Parameters:
    ///   - url: exactly what is called: `aud`.
    ///   - id: what the call is about: `jti`, the same on every retry.
    ///   - body: what is posted; `body` is the base64url of its SHA-256.
    /// - Throws: when the realm is gone or disabled, or its key is not available.
    public func token(realm: UUIDValue, url: String, id: UUIDValue, body: [UInt8]) async throws -> String {
        guard let realm = try await realms.realm(realm) else { throw TokenError.unavailable("realm") }
        let now = clock()
        let key = try await keys.current(for: realm, client: nil, now: now)
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("aud", url)
        claims.member("iat", Int(now))
        claims.member("exp", Int(now + Self.lifetime))
        claims.member("jti", id.description)
        claims.member("body", Base64.urlEncode(Array(SHA256.hash(data: body))))
        return try key.sign(claims.finish(), typ: "postern-hook+jwt")
    }
}
