import Encoding
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
    var audience: [String]
    let refreshToken: RefreshToken?
    /// The session row's salt, which keys the access token's proof.
    let tokenSalt: [UInt8]
    /// The session's absolute end, seconds since the epoch.
    let sessionExpiresAt: Int
    /// The database clock at the moment of the grant, seconds since the epoch.
    let now: Int
    /// `nonce` of the authorization request.
    var nonce: String?
    /// `acr` that was chosen by `acr_values` of the sign-in or of this request; `nil`: follows from ``amr``.
    var acr: String?
    /// Whether ``acr`` is what the request of this answer asked for, while the session goes on saying its own.
    var isContextOfAnswer = false
    /// Thumbprint of the key that the access token is bound to; `nil`: none.
    var thumbprint: [UInt8]?
    /// The address that the session was opened for, where the client asked for one.
    var proven: SignInAddress?

    /// `acr` of the tokens.
    var context: String { acr ?? AuthenticationContext(amr: amr).rawValue }
}

/// An address as the tokens of Cotter's wire name it.
struct SignInAddress: Sendable {
    let value: String
    /// `OTP` or `MAGIC_LINK`.
    let method: String
}

/// The success answer of the token endpoint (RFC 6749 §5.1).
public struct TokenResponse: Sendable, Equatable {
    let accessToken: String
    let expiresIn: Int
    let scope: [String]
    let refreshToken: String?
    let idToken: String?
    /// Whether the access token is bound to a key (RFC 9449 §5).
    let isBound: Bool
    /// The client's next nonce, for the field `DPoP-Nonce` (RFC 9449 §8.2).
    public internal(set) var nonce: String?
    /// Whether the same sign-in was answered a moment ago, with the same session.
    public internal(set) var isRepeated = false

    /// The JSON body.
    public var json: [UInt8] {
        var object = JSONWriter(reserving: 2048)
        object.member("access_token", accessToken)
        object.member("token_type", isBound ? "DPoP" : "Bearer")
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
        var token = AccessToken(
            owner: authentication.session, issuedAt: authentication.now,
            lifetime: realm.accessTokenLifetime(for: client),
            sessionExpiresAt: authentication.sessionExpiresAt, scope: authentication.scope,
            audience: authentication.audience)
        if authentication.isContextOfAnswer { token.acr = authentication.context }
        token.thumbprint = authentication.thumbprint
        let accessToken: String
        if client.issuesJWTAccessTokens, let signingKey {
            let claims = Claims.accessToken(token, authentication, realm, client)
            accessToken = try signingKey.sign(claims, typ: "at+jwt")
        } else {
            accessToken = try SealedReference.text(
                token, epoch: authentication.authTime, realm: realm.id, salt: authentication.tokenSalt,
                keyring: keyring)
        }
        var idToken: String?
        if authentication.scope.contains("openid"), let signingKey {
            let claims = Claims.idToken(
                token, authentication, realm, client, accessTokenHash: signingKey.accessTokenHash(accessToken))
            idToken = try signingKey.sign(claims, typ: "JWT")
        }
        return TokenResponse(
            accessToken: accessToken, expiresIn: token.expiresAt - token.issuedAt, scope: authentication.scope,
            refreshToken: authentication.refreshToken?.text, idToken: idToken, isBound: token.thumbprint != nil)
    }

    /// Mints an access token of a service account, and nothing else.
    /// - Parameter createdAt: when the account was made, seconds since the epoch.
    func issue(
        _ token: AccessToken, createdAt: Int, salt: [UInt8], realm: Realm, client: Client, signingKey: SigningKey?
    ) throws(TokenError) -> TokenResponse {
        try requireTrueClock(token.issuedAt)
        let accessToken: String
        if client.issuesJWTAccessTokens, let signingKey {
            accessToken = try signingKey.sign(Claims.serviceToken(token, realm, client), typ: "at+jwt")
        } else {
            accessToken = try SealedReference.text(
                token, of: .serviceAccount, epoch: createdAt, realm: realm.id, salt: salt, keyring: keyring)
        }
        return TokenResponse(
            accessToken: accessToken, expiresIn: token.expiresAt - token.issuedAt, scope: token.scope,
            refreshToken: nil, idToken: nil, isBound: token.thumbprint != nil)
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
}
