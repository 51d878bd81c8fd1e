public import Persistence

/// `client_credentials` (RFC 6749 §4.4): a confidential client acts as its service account.
///
/// No user, hence no `id_token`, no session, no refresh token, and no row for a token: the account's salt proves it,
/// and another salt ends all of them (docs/decisions/0014).
public struct ClientCredentialsGrant: Grant {
    /// `client_credentials`.
    public let grantType = GrantType.clientCredentials
    /// A standard grant: the realm's native-grants flag does not concern it.
    public func isEnabled(in realm: Realm) -> Bool { true }

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

    /// Takes permits and reads the client's service account, in one statement.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let realm = request.realm
        let client = request.client
        // OpenID Connect Core §3: `openid` asks to authenticate an end user, and there is none.
        guard !request.access.scope.contains("openid") else { throw TokenError.invalidScope("openid without a user") }
        let signingKey = try await issuer.prepare(realm: realm, client: client, scope: request.access.scope)
        let outcome = try await limiter.admitting(.token, request.subjects, realm: realm) { permits in
            try await accounts.grant(
                realm: realm.id, client: client.key, source: request.source, proof: request.proof,
                permits: permits)
        }
        switch outcome {
        case .refused:
            throw TokenError(.unauthorizedClient, "The client may not use this grant type.", reason: "changed since")
        case .granted(let account, let salt, let createdAt, let now):
            var token = AccessToken(
                owner: account, issuedAt: Int(now), lifetime: realm.accessTokenLifetime(for: client),
                sessionExpiresAt: .max, scope: request.access.scope, audience: request.audience)
            token.thumbprint = request.proof?.thumbprint
            return try issuer.issue(
                token, createdAt: Int(createdAt), salt: salt, realm: realm, client: client,
                signingKey: signingKey)
        }
    }
}
