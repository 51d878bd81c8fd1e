public import Persistence

/// Redeems and refreshes on Cotter's web wire: the authorization code flow and its refresh tokens with other names.
public struct CotterIdentities: Sendable {
    private let codes: IdentityCodeStore
    private let refreshes: RefreshGrant
    private let issuer: TokenIssuer
    private let limiter: RateLimiter
    private let databaseClock: DatabaseClock

    /// Creates the service.
    public init(
        codes: IdentityCodeStore, refreshes: RefreshGrant, issuer: TokenIssuer, limiter: RateLimiter,
        databaseClock: DatabaseClock
    ) {
        self.codes = codes
        self.refreshes = refreshes
        self.issuer = issuer
        self.limiter = limiter
        self.databaseClock = databaseClock
    }

    /// The body of `get_identity`.
    public struct Presented: Sendable {
        let code: String
        let verifier: String
        let challengeID: Int64
        let redirectURL: String

        /// Takes the members as they came.
        public init(code: String, verifier: String, challengeID: Int64, redirectURL: String) {
            self.code = code
            self.verifier = verifier
            self.challengeID = challengeID
            self.redirectURL = redirectURL
        }
    }

    /// Consumes a code, opens the session and says whose address was proven.
    /// - Parameter key: the API key that was sent.
    /// - Throws: ``CotterRefusal``, `TokenError`, or what the database threw.
    public func identity(
        _ presented: Presented, key: String?, realm: Realm, source: String, userAgent: String?
    ) async throws -> CotterIdentity {
        let context = RequestContext(realm: realm, client: try realm.cotterClient(key), source: source)
        let client = context.client
        try databaseClock.require()
        let now = issuer.clock()
        let signingKey = try await issuer.signingKeys.current(for: realm, algorithm: .es256, now: now)
        let identityKey = try await issuer.signingKeys.current(for: realm, algorithm: .edDSA, now: now)
        guard let code = AuthorizationCode(presented.code) else {
            try await limiter.count(.token, context.subjects, realm: realm)
            throw CotterRefusal.code("malformed")
        }
        let session = UUIDValue.random()
        let refreshToken = RefreshToken.first(realm: realm.id, session: session, keyring: issuer.keyring)
        var new = NewSession(
            id: session, tokenSalt: randomBytes(16), refreshHash: refreshToken.hash, scope: [], resources: [], amr: [],
            accessTokenLifetime: Int32(clamping: realm.accessTokenLifetime(for: client)),
            refreshTokenLifetime: Int32(clamping: realm.refreshTokenLifetime(for: client)), source: source,
            serverKey: issuer.keyring.newest.id)
        new.userAgent = userAgent
        new.app = realm.app?.slug
        let wanted = AuthorizationCodeStore.Presented(
            realm: realm.id, client: client.key, codeHash: code.hash(withChallenge: presented.challengeID),
            redirectURI: presented.redirectURL,
            codeChallenge: AuthorizationCodeGrant.challenge(of: presented.verifier.withoutEscapes), resources: nil)
        let opened = new
        let outcome: IdentityCodeStore.Outcome
        do {
            outcome = try await limiter.admitting(.token, context.subjects, realm: realm) { permits in
                try await codes.redeem(wanted, session: opened, permits: permits)
            }
        } catch {
            throw Self.refusal(of: error)
        }
        switch outcome {
        case .refused(let reason): throw CotterRefusal.code(reason)
        case .redeemed(let redeemed):
            var authentication = Authentication(
                session: session, user: redeemed.user, amr: redeemed.amr, authTime: Int(redeemed.authTime),
                scope: redeemed.scope, audience: [client.clientID], refreshToken: refreshToken,
                tokenSalt: new.tokenSalt, sessionExpiresAt: Int(redeemed.sessionExpiresAt), now: Int(redeemed.now),
                acr: redeemed.acr)
            authentication.proven = SignInAddress(value: redeemed.value, method: redeemed.method)
            let tokens = try issuer.issue(authentication, realm: realm, client: client, signingKey: signingKey)
            return try CotterIdentity(redeemed, tokens, client: client, userAgent: userAgent, identityKey)
        }
    }

    /// Refreshes. - Returns: the `oauth_token` object.
    /// - Throws: as ``identity(_:key:realm:source:userAgent:)``.
    public func refreshed(
        _ refreshToken: String, key: String?, realm: Realm, source: String, userAgent: String?
    ) async throws -> [UInt8] {
        let client = try realm.cotterClient(key)
        try databaseClock.require()
        let signingKey = try await issuer.signingKeys.current(for: realm, algorithm: .es256, now: issuer.clock())
        let form = FormParameters([("refresh_token", refreshToken)]) ?? FormParameters()
        let request = TokenRequest(
            context: RequestContext(realm: realm, client: client, source: source), form: form,
            contexts: .none, access: try RequestedAccess(form, realm: realm, client: client), audience: [],
            userAgent: userAgent)
        var authentication: Authentication
        do {
            authentication = try await refreshes.rotated(request)
        } catch let error as TokenError where error.code == .invalidGrant {
            throw CotterRefusal.refreshToken(error.reason)
        } catch {
            throw Self.refusal(of: error)
        }
        // After the rotation: if this answer is lost, the app repeats the request and gets the same successor.
        guard let proof = try await codes.proof(realm: realm.id, session: authentication.session) else {
            throw CotterRefusal.refreshToken("a session of another wire")
        }
        authentication.proven = SignInAddress(value: proof.value, method: proof.method)
        authentication.audience = [client.clientID]
        return try issuer.issue(authentication, realm: realm, client: client, signingKey: signingKey)
            .cotterJSON(method: proof.method)
    }

    /// A client that was disabled, or lost a permission, a moment ago is one of no key.
    private static func refusal(of error: any Error) -> any Error {
        let isOfClient = [.invalidClient, .unauthorizedClient, .unsupportedGrantType].contains(TokenError(error).code)
        return isOfClient ? CotterRefusal.apiKey : error
    }

    /// The keys of the tokens of this wire (RFC 7517 §5): ES256 alone, the one that signs first.
    public func keys(of realm: Realm) async throws(TokenError) -> [UInt8] {
        try await issuer.signingKeys.jwks(for: realm, algorithm: .es256, now: issuer.clock())
    }
}
