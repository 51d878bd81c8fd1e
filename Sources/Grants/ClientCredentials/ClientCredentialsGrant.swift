public import Persistence

/// `client_credentials` (RFC 6749 §4.4): a confidential client acts as its service account.
///
/// No user, hence no `id_token`, no session, no refresh token, and no row for a token: the account's salt proves it,
/// and another salt ends all of them (docs/decisions/0014).
public struct ClientCredentialsGrant: Grant {
    /// `client_credentials`.
    public let grantType = GrantType.clientCredentials
    /// A standard grant: the realm's native-grants flag does not concern it.
    public let isNative = false

    private let accounts: ServiceAccountStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter

    /// Creates the grant.
    public init(accounts: ServiceAccountStore, issuer: TokenIssuer, limiter: RateLimiter) {
        self.accounts = accounts
        self.issuer = issuer
        self.limiter = limiter
    }

    /// None.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {}

    /// Takes permits and asks whose account it is, in one statement.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let realm = request.realm
        let client = request.client
        // OpenID Connect Core §3: `openid` asks to authenticate an end user, and there is none.
        guard !request.access.scope.contains("openid") else { throw TokenError.invalidScope("openid without a user") }
        let signingKey = try await issuer.prepare(realm: realm, client: client, scope: request.access.scope)
        let outcome = try await limiter.admitting(.token, request.subjects, realm: realm) { permits in
            let (outcome, verdict) = try await accounts.grant(
                realm: realm.id, client: client.key, source: request.source, permits: permits)
            return (outcome.unlessLimited, verdict)
        }
        switch outcome {
        case .refused, .limited:
            throw TokenError(.unauthorizedClient, "The client may not use this grant type.", reason: "changed since")
        case .granted(let account, let salt, let createdAt, let now):
            let token = AccessToken(
                session: account, issuedAt: Int(now), lifetime: realm.accessTokenLifetime(for: client),
                sessionExpiresAt: .max, scope: request.access.scope, audience: request.audience)
            return try issuer.issue(
                token, serviceAccount: account, createdAt: Int(createdAt), salt: salt, realm: realm, client: client,
                signingKey: signingKey)
        }
    }
}

extension GrantType {
    /// A client acts for itself (RFC 6749 §4.4).
    public static let clientCredentials = GrantType(rawValue: "client_credentials")
}

extension TokenIssuer {
    /// Mints an access token of a service account, and nothing else.
    fileprivate func issue(
        _ token: AccessToken, serviceAccount: UUIDValue, createdAt: Int, salt: [UInt8], realm: Realm, client: Client,
        signingKey: SigningKey?
    ) throws(TokenError) -> TokenResponse {
        try requireTrueClock(token.issuedAt)
        let accessToken: String
        if client.issuesJWTAccessTokens, let signingKey {
            let claims = Self.serviceTokenClaims(token, serviceAccount, realm, client)
            accessToken = try signingKey.sign(claims, typ: "at+jwt")
        } else {
            accessToken = try SealedReference.text(
                token, of: .serviceAccount, authTime: createdAt, realm: realm.id, salt: salt, keyring: keyring)
        }
        return TokenResponse(
            accessToken: accessToken, expiresIn: token.expiresAt - token.issuedAt, scope: token.scope,
            refreshToken: nil, idToken: nil)
    }

    /// RFC 9068 §2.2: without a resource owner `sub` names the client's account, and nothing says how a user signed in.
    private static func serviceTokenClaims(
        _ token: AccessToken, _ account: UUIDValue, _ realm: Realm, _ client: Client
    ) -> [UInt8] {
        var claims = JSONWriter()
        claims.member("iss", realm.issuer)
        claims.member("sub", account.description)
        claims.audience(token.audience)
        claims.member("exp", token.expiresAt)
        claims.member("iat", token.issuedAt)
        claims.member("jti", Base64.urlEncode(token.jti))
        claims.member("client_id", client.clientID)
        claims.member("scope", token.scope.joined(separator: " "))
        claims.member("realm", realm.slug)
        return claims.finish()
    }
}
