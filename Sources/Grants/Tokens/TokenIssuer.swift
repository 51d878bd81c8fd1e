public import Persistence

/// What a grant proved and the database recorded: everything the tokens of an answer are made from.
public struct Authentication: Sendable {
    let session: UUIDValue
    let user: UUIDValue
    /// `amr` values (RFC 8176): what was proven, never more.
    let amr: [String]
    /// Seconds since the epoch.
    let authTime: Int
    /// The granted scope of this answer.
    let scope: [String]
    let audience: [String]
    let refreshToken: RefreshToken?
    /// The session row's salt, which keys the access token's proof.
    let tokenSalt: [UInt8]
    /// The session's absolute end, seconds since the epoch.
    let sessionExpiresAt: Int
    /// The database clock at the moment of the grant, seconds since the epoch.
    let now: Int
}

/// The success answer of the token endpoint (RFC 6749 §5.1).
public struct TokenResponse: Sendable, Equatable {
    let accessToken: String
    let expiresIn: Int
    let scope: [String]
    let refreshToken: String?
    let idToken: String?

    /// The JSON body.
    public var json: [UInt8] {
        var object = JSONWriter(reserving: 2048)
        object.member("access_token", accessToken)
        object.member("token_type", "Bearer")
        object.member("expires_in", expiresIn)
        object.member("scope", scope.joined(separator: " "))
        object.member("refresh_token", refreshToken)
        object.member("id_token", idToken)
        return object.finish()
    }
}

/// Makes the tokens of an answer.
public struct TokenIssuer: Sendable {
    let keyring: Keyring
    let signingKeys: SigningKeys
    /// Seconds since the epoch by this process's clock, only to notice that it is wrong.
    let clock: @Sendable () -> Double

    /// Creates an issuer.
    public init(keyring: Keyring, signingKeys: SigningKeys, clock: @escaping @Sendable () -> Double) {
        self.keyring = keyring
        self.signingKeys = signingKeys
        self.clock = clock
    }

    /// Everything that may fail before a factor is consumed: the signing key, when this answer will need one.
    func prepare(realm: Realm, client: Client, scope: [String]) async throws(TokenError) -> SigningKey? {
        guard client.issuesJWTAccessTokens || scope.contains("openid") else { return nil }
        return try await signingKeys.current(for: realm, client: client, now: clock())
    }

    /// Mints the tokens. Nothing here asks the database.
    func issue(
        _ authentication: Authentication, realm: Realm, client: Client, signingKey: SigningKey?
    ) throws(TokenError) -> TokenResponse {
        try requireTrueClock(authentication.now)
        let token = AccessToken(
            session: authentication.session, issuedAt: authentication.now,
            lifetime: realm.accessTokenLifetime(for: client),
            sessionExpiresAt: authentication.sessionExpiresAt, scope: authentication.scope,
            audience: authentication.audience)
        let accessToken: String
        if client.issuesJWTAccessTokens, let signingKey {
            let claims = Self.accessTokenClaims(token, authentication, realm, client)
            accessToken = try signingKey.sign(claims, typ: "at+jwt")
        } else {
            accessToken = try SealedReference.text(
                token, authTime: authentication.authTime, realm: realm.id, salt: authentication.tokenSalt,
                keyring: keyring)
        }
        var idToken: String?
        if authentication.scope.contains("openid"), let signingKey {
            let claims = Self.idTokenClaims(
                token, authentication, realm, client, accessTokenHash: signingKey.accessTokenHash(accessToken))
            idToken = try signingKey.sign(claims, typ: "JWT")
        }
        return TokenResponse(
            accessToken: accessToken, expiresIn: token.expiresAt - token.issuedAt, scope: authentication.scope,
            refreshToken: authentication.refreshToken?.text, idToken: idToken)
    }

    /// Refuses to sign when the clocks of this process and of the database differ by more than 60 s. This is the last
    /// guard: ``TokenService`` already refuses before a factor is consumed, by the difference that the listening
    /// connection measured.
    /// - Parameter now: the database clock, seconds since the epoch.
    func requireTrueClock(_ now: Int) throws(TokenError) {
        guard abs(clock() - Double(now)) <= DatabaseClock.maximumDifference else {
            throw .unavailable("the process clock differs from the database's by more than 60 s")
        }
    }

    /// The claims of RFC 9068 §2.2, and `sid`, `amr` and `realm`.
    private static func accessTokenClaims(
        _ token: AccessToken, _ authentication: Authentication, _ realm: Realm, _ client: Client
    ) -> [UInt8] {
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("sub", authentication.user.description)
        claims.audience(token.audience)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("jti", Base64.urlEncode(token.jti))
        claims.member("client_id", client.clientID)
        claims.member("scope", token.scope.joined(separator: " "))
        claims.member("auth_time", authentication.authTime)
        claims.member("amr", authentication.amr)
        claims.member("sid", token.session.description)
        claims.member("realm", realm.slug)
        claims.testIdentity(authentication.user)
        return claims.finish()
    }

    /// OpenID Connect Core §2 and §3.1.3.6 (`at_hash`).
    private static func idTokenClaims(
        _ token: AccessToken, _ authentication: Authentication, _ realm: Realm, _ client: Client,
        accessTokenHash: String
    ) -> [UInt8] {
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("sub", authentication.user.description)
        claims.member("aud", client.clientID)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("auth_time", authentication.authTime)
        claims.member("amr", authentication.amr)
        claims.member("sid", token.session.description)
        claims.member("realm", realm.slug)
        claims.testIdentity(authentication.user)
        claims.member("at_hash", accessTokenHash)
        return claims.finish()
    }
}

extension JSONWriter {
    /// `test_identity`: only there, and true, when the user is one that an administrator made for app-store review.
    public mutating func testIdentity(_ user: UUIDValue) {
        if user.isTestIdentity { member("test_identity", true) }
    }
}

extension Realm {
    /// Seconds; the client's own value wins over the realm's.
    func accessTokenLifetime(for client: Client) -> Int {
        client.accessTokenLifetime ?? policy.accessTokenLifetime
    }

    /// Seconds; the client's own value wins over the realm's.
    func refreshTokenLifetime(for client: Client) -> Int {
        client.refreshTokenLifetime ?? policy.refreshTokenLifetime
    }
}
