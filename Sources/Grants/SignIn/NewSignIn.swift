import Persistence

/// A sign-in that may be about to happen: everything its tokens need, made before a factor is consumed.
///
/// What may fail (scope, resource, signing key) fails here; after the statement that decides, only minting is left.
struct NewSignIn: Sendable {
    let realm: Realm
    let client: Client
    let session = UUIDValue.random()
    private let source: String
    private let userAgent: String?
    private let proof: ProofUse?
    private let contexts: RequestedContexts
    private let scope: [String]
    private let audience: [String]
    private let refreshToken: RefreshToken?
    private let tokenSalt = randomBytes(16)
    private let signingKey: SigningKey?
    private let issuer: TokenIssuer

    /// A sign-in for a token request. - Throws: `temporarily_unavailable` when there is no key to sign with.
    init(_ request: TokenRequest, issuer: TokenIssuer) async throws(TokenError) {
        try await self.init(
            request.context, contexts: request.contexts, scope: request.access.scope, audience: request.audience,
            userAgent: request.userAgent, issuer: issuer)
    }

    /// A sign-in for what was asked for before. - Throws: `temporarily_unavailable` when there is no key to sign with.
    init(
        _ context: RequestContext, contexts: RequestedContexts, scope: [String], audience: [String],
        userAgent: String?, issuer: TokenIssuer
    ) async throws(TokenError) {
        realm = context.realm
        client = context.client
        source = context.source
        proof = context.proof
        self.userAgent = userAgent
        self.contexts = contexts
        self.scope = scope
        self.audience = audience
        signingKey = try await issuer.prepare(realm: realm, client: client, scope: scope)
        refreshToken =
            scope.contains("offline_access")
            ? RefreshToken.first(realm: realm.id, session: session, keyring: issuer.keyring) : nil
        self.issuer = issuer
    }

    /// What the database stores of it.
    /// - Parameter amr: what the factor proves (RFC 8176), never more.
    func record(amr: [String]) -> NewSession {
        var record = NewSession(
            id: session, tokenSalt: tokenSalt, refreshHash: refreshToken?.hash, scope: scope, resources: audience,
            amr: amr,
            accessTokenLifetime: Int32(clamping: realm.accessTokenLifetime(for: client)),
            refreshTokenLifetime: Int32(clamping: realm.refreshTokenLifetime(for: client)), source: source,
            serverKey: issuer.keyring.newest.id)
        record.userAgent = userAgent
        record.proof = proof
        record.app = realm.app?.slug
        if let least = contexts.least {
            record.context = NewSession.Context(acr: contexts.met(by: amr)?.rawValue, level: Int32(least.level))
        }
        return record
    }

    /// The answer, made after the database confirmed the sign-in.
    func respond(_ signedIn: SignedIn) throws(TokenError) -> TokenResponse {
        guard let context = contexts.met(by: signedIn.amr) else {
            throw .unavailable("a session that does not meet what was asked for")
        }
        let authentication = Authentication(
            session: session, user: signedIn.user, amr: signedIn.amr, authTime: Int(signedIn.authTime), scope: scope,
            audience: audience,
            refreshToken: refreshToken, tokenSalt: tokenSalt, sessionExpiresAt: Int(signedIn.sessionExpiresAt),
            now: Int(signedIn.now), acr: context.rawValue, thumbprint: proof?.thumbprint)
        return try issuer.issue(authentication, realm: realm, client: client, signingKey: signingKey)
    }
}
