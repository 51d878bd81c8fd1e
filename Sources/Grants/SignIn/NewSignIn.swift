import Persistence

/// A sign-in that may be about to happen: everything its tokens need, made before a factor is consumed.
///
/// What may fail (scope, resource, signing key) fails here; after the statement that decides, only minting is left.
struct NewSignIn: Sendable {
    let realm: Realm
    let client: Client
    let session: UUIDValue
    private let source: String
    private let userAgent: String?
    private let proof: ProofUse?
    private let contexts: RequestedContexts
    private let scope: [String]
    private let audience: [String]
    private let refreshToken: RefreshToken?
    private let tokenSalt: [UInt8]
    private let key: ServerKey
    private let isRepeatable: Bool
    private let signingKey: SigningKey?
    private let issuer: TokenIssuer

    /// A sign-in for a token request. - Throws: `temporarily_unavailable` when there is no key to sign with.
    /// - Parameter isRepeatable: whether the identical request gets the same session.
    init(_ request: TokenRequest, isRepeatable: Bool, issuer: TokenIssuer) async throws(TokenError) {
        try await self.init(
            request.context, contexts: request.contexts, scope: request.access.scope, audience: request.audience,
            userAgent: request.userAgent, seed: isRepeatable ? SignInSeed(request, keyring: issuer.keyring) : nil,
            issuer: issuer)
    }

    /// A sign-in for what was asked for before. - Throws: `temporarily_unavailable` when there is no key to sign with.
    /// - Parameter seed: of a request that may come again.
    init(
        _ context: RequestContext, contexts: RequestedContexts, scope: [String], audience: [String],
        userAgent: String?, seed: SignInSeed?, issuer: TokenIssuer
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
        session = seed?.session ?? .random()
        tokenSalt = seed?.tokenSalt ?? randomBytes(16)
        key = seed?.key ?? issuer.keyring.newest
        isRepeatable = seed != nil
        refreshToken =
            scope.contains("offline_access")
            ? .first(realm: realm.id, session: session, secret: seed?.refreshSecret ?? randomBytes(32), key: key) : nil
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
            serverKey: key.id)
        record.isRepeatable = isRepeatable
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
        var response = try issuer.issue(authentication, realm: realm, client: client, signingKey: signingKey)
        response.isRepeated = signedIn.isRepeated
        return response
    }
}
