import Encoding
public import Persistence

/// `authToken`: what a backend hands to its app. It names a transaction and nothing about a person, and is worth
/// something only with a proof of the key that opened the transaction.
public struct PossessionTokens: Sendable {
    private let keys: SigningKeys
    private let nonces: DPoPNonces
    private let databaseClock: DatabaseClock

    static let type = "postern-possession+jwt"
    /// Seconds that a token and its transaction live.
    public static let lifetime = 900

    /// Signs with the realm's key. - Parameter databaseClock: a node whose clock is wrong refuses to sign.
    public init(keys: SigningKeys, nonces: DPoPNonces, databaseClock: DatabaseClock) {
        self.keys = keys
        self.nonces = nonces
        self.databaseClock = databaseClock
    }

    /// A token with a nonce for the app's first proof.
    func token(authID: UUIDValue, realm: Realm) async throws(TokenError) -> String {
        try databaseClock.require()
        let now = databaseClock.now
        let key = try await keys.current(for: realm, client: nil, now: now)
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("aud", realm.issuer + "/connect/possession")
        claims.member("iat", Int(now))
        claims.member("exp", Int(now) + Self.lifetime)
        claims.member("jti", authID.description)
        claims.member("nonce", nonces.make(realm: realm.id, at: now))
        return try key.sign(claims.finish(), typ: Self.type)
    }

    /// The transaction that a token names; `nil` for a text that this realm did not sign as such a token, or that is
    /// too old.
    public func authID(of token: String, realm: Realm) -> UUIDValue? {
        let now = databaseClock.now
        guard
            let claims = keys.claims(of: token, maximumBytes: 4096, typ: Self.type, realm: realm, now: now),
            claims.text("iss") == realm.issuer, let expiresAt = claims.date("exp"), expiresAt > now
        else { return nil }
        return claims.text("jti").flatMap(UUIDValue.init)
    }
}
