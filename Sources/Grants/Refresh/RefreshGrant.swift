public import Persistence

/// `refresh_token` (RFC 6749 §6). Always rotates. Within the realm's retry window the predecessor gets the same
/// successor again, so that a lost answer does not sign the user out; with a proof of the session's key at any time.
public struct RefreshGrant: Grant {
    /// `refresh_token`.
    public let grantType = GrantType.refreshToken
    /// Existing sessions can be refreshed while native grants are off.
    public func isEnabled(in realm: Realm) -> Bool { true }
    /// The family's scope, which only the statement knows, is the one that counts.
    public let knowsScope = false

    /// The strongest: a session may come from any kind of sign-in.
    public let highestContext: AuthenticationContext? = .phishingResistant
    /// The session may be old.
    public let takesMaximumAge = true

    private let sessions: SessionStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter
    private let keyring: Keyring
    private let observe: @Sendable (Event) -> Void

    /// What came of a refresh token that was found.
    public enum Event: String, Sendable, CaseIterable {
        /// It was used for the first time.
        case rotated
        /// The answer of its first use was repeated.
        case retried
        /// It was used again too late: the session ended.
        case reuse
    }

    /// - Parameter observe: told what came of every refresh token that was found.
    public init(
        sessions: SessionStore, issuer: TokenIssuer, limiter: RateLimiter, keyring: Keyring,
        observe: @escaping @Sendable (Event) -> Void = { _ in }
    ) {
        self.sessions = sessions
        self.observe = observe
        self.issuer = issuer
        self.limiter = limiter
        self.keyring = keyring
    }

    /// `refresh_token`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["refresh_token"] != nil else { throw .missing("refresh_token") }
    }

    /// Rotates, or repeats the answer of the first use, in one statement.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        // The scope is the family's, which only the statement knows: prepare for the most it can be.
        let signingKey = try await issuer.prepare(realm: request.realm, client: request.client, scope: ["openid"])
        return try issuer.issue(
            await rotated(request), realm: request.realm, client: request.client, signingKey: signingKey)
    }

    /// Rotates; what the tokens of the answer are made from.
    func rotated(_ request: TokenRequest) async throws -> Authentication {
        let realm = request.realm
        let client = request.client
        guard let presented = RefreshToken(request.form["refresh_token"] ?? "", realm: realm.id, keyring: keyring)
        else {
            try await limiter.count(.token, request.subjects, realm: realm, spending: request.proof)
            throw Self.refused("not one of ours")
        }
        let successors = presented.successors(keyring: keyring).map { (token: $0, hash: $0.hash) }
        var rotation = SessionStore.Rotation(
            realm: realm.id, client: client.key, session: presented.session,
            generation: Int32(clamping: presented.generation),
            hash: presented.hash, successorHashes: successors.map(\.hash),
            scope: request.form["scope"] == nil ? nil : request.access.scope,
            resources: Self.resources(request),
            refreshTokenLifetime: Int32(clamping: realm.refreshTokenLifetime(for: client)),
            source: request.source, serverKey: keyring.newest.id, permits: PermitRequest())
        rotation.proof = request.proof
        rotation.level = request.contexts.least.map { Int32($0.level) }
        rotation.maximumAge = request.contexts.maximumAge.map { Int32(clamping: $0) }
        let family = try await rotate(rotation, request)
        guard let successor = successors.first(where: { $0.hash == family.currentHash })?.token else {
            throw TokenError.unavailable("the successor was made under a key this node does not hold")
        }
        let scope = Self.scope(of: family, request)
        return Authentication(
            session: presented.session, user: family.user, amr: family.amr, authTime: Int(family.authTime),
            scope: scope,
            audience: Self.audience(of: family, scope: scope, request), refreshToken: successor,
            tokenSalt: family.tokenSalt,
            sessionExpiresAt: Int(family.expiresAt), now: Int(family.now),
            acr: request.contexts.values.isEmpty ? family.acr : request.contexts.met(by: family.amr)?.rawValue,
            isContextOfAnswer: !request.contexts.values.isEmpty, thumbprint: request.proof?.thumbprint)
    }

    private func rotate(
        _ rotation: SessionStore.Rotation, _ request: TokenRequest
    ) async throws -> SessionStore.Rotated {
        var outcome = try await limiter.admitting(.token, request.subjects, realm: request.realm) { permits in
            var rotation = rotation
            rotation.permits = permits
            let (outcome, verdict) = try await sessions.rotate(rotation)
            guard case .busy = outcome else { return (outcome, verdict) }
            // Other requests wait for the verdict: the permits are taken before this request waits for its row.
            return (outcome, try await limiter.verdict(on: permits, realm: request.realm))
        }
        if case .busy = outcome { outcome = try await sessions.rotateWhenFree(rotation) }
        switch outcome {
        case .rotated(let family):
            observe(family.isRepeated ? .retried : .rotated)
            return family
        case .reused:
            observe(.reuse)
            throw Self.refused("reuse")
        case .refused(let reason): throw Self.refused(reason)
        case .invalidScope: throw TokenError.invalidScope("wider than the family's")
        case .invalidTarget: throw RequestedAccess.invalidTarget("not the family's")
        case .unmet: throw TokenError.unmetAuthenticationRequirements("the session is too old, or proved less")
        case .proofUsed: throw StoreError.proofUsed
        case .proofForgotten: throw StoreError.proofForgotten
        case .clientFault(let fault): throw StoreError.clientFault(fault)
        case .busy: throw TokenError.unavailable("another transaction holds the session")
        }
    }

    /// The scope asked for, else the family's, less what the client or realm has lost since.
    private static func scope(of family: SessionStore.Rotated, _ request: TokenRequest) -> [String] {
        let wanted = request.form["scope"] == nil ? family.scope : request.access.scope
        return wanted.filter { request.realm.scopes[$0]?.enabled == true && request.client.mayRequest(scope: $0) }
    }

    /// The resources asked for; `nil` for none. A resource that the scope asked for does not have is one that no family
    /// has: the statement refuses it, and judges reuse first.
    private static func resources(_ request: TokenRequest) -> [String]? {
        let asked = request.access.resources
        guard !asked.isEmpty else { return nil }
        guard request.form["scope"] != nil else { return asked }
        let inScope = RequestedAccess.resources(of: request.access.scope, realm: request.realm)
        return asked.allSatisfy(inScope.contains) ? asked : [""]
    }

    /// What the family may address, narrowed by the scope of this answer and by `resource`; the `client_id` when there
    /// is no audience.
    ///
    /// A token for the client alone opens the account. So it is never what is left when scope and resources have
    /// nothing in common, as after an administrator changed them: the token stays one for the API it was asked for.
    private static func audience(
        of family: SessionStore.Rotated, scope: [String], _ request: TokenRequest
    ) -> [String] {
        let own = [request.client.clientID]
        let inScope = RequestedAccess.resources(of: scope, realm: request.realm)
        let asked = request.access.resources
        let wanted = asked.isEmpty ? family.resources : asked
        let common = wanted.filter(inScope.contains)
        if !common.isEmpty { return common }
        if !asked.isEmpty { return asked }
        if inScope.isEmpty { return own }
        // A family without a resource was not narrowed: its scopes have got theirs since the sign-in.
        return family.resources == own ? inScope : family.resources
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "The refresh token is invalid.", reason: reason)
    }
}
