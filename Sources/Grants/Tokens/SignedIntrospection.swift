import Encoding

extension SigningKeys {
    /// An introspection answer as a JWT (RFC 9701 §5), signed as the ID tokens of the asking client are.
    ///
    /// It has neither `sub` nor `exp` beside the answer, and a `typ` of its own: no verifier takes it for another JWT.
    /// - Parameters:
    ///   - answer: the JSON object of RFC 7662 §2.2.
    ///   - client: who asked: `aud`.
    ///   - now: seconds since the epoch.
    public func introspection(
        _ answer: [UInt8], for client: Client, realm: Realm, now: Double
    ) async throws(TokenError) -> [UInt8] {
        let key = try await current(for: realm, client: client, now: now)
        var claims = JSONWriter(reserving: answer.count + 256)
        claims.member("iss", realm.issuer)
        claims.member("aud", client.clientID)
        claims.member("iat", Int(now))
        claims.member("token_introspection", json: answer)
        return Array(try key.sign(claims.finish(), typ: "token-introspection+jwt").utf8)
    }
}
