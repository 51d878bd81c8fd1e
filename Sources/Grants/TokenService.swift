public import Encoding
public import Persistence

/// The token endpoint's dispatcher. The order of checks is the source order of
/// ``token(_:credentials:realm:source:userAgent:)``.
public struct TokenService: Sendable {
    private let grants: [GrantType: any Grant]
    private let clients: ClientAuthenticator
    private let databaseClock: DatabaseClock
    private let proofs: Proofs

    /// Two grants with one name stop the start, not a request.
    /// - Parameter databaseClock: a node whose clock is wrong refuses before a factor is consumed.
    public init(_ grants: [any Grant], clients: ClientAuthenticator, databaseClock: DatabaseClock, proofs: Proofs) {
        self.clients = clients
        self.databaseClock = databaseClock
        self.proofs = proofs
        self.grants = Dictionary(uniqueKeysWithValues: grants.map { ($0.grantType, $0) })
    }

    /// `grant_types_supported` for a realm: native grants and codes only while the realm has them on.
    public func grantTypes(for realm: Realm) -> [String] {
        offered(to: realm).map(\.grantType.rawValue)
    }

    /// Adds what grants of the realm have to say in its discovery documents.
    public func describe(in metadata: inout JSONWriter, for realm: Realm) {
        for grant in offered(to: realm) { grant.describe(in: &metadata, for: realm) }
    }

    private func offered(to realm: Realm) -> [any Grant] {
        grants.values.filter { $0.isEnabled(in: realm) }.sorted { $0.grantType.rawValue < $1.grantType.rawValue }
    }

    /// Whether a wire value names a registered grant.
    public func knows(_ grantType: String) -> Bool {
        grants[GrantType(rawValue: grantType)] != nil
    }

    /// Runs all checks that follow the HTTP layer's (method, content type, body size, form syntax), then redeems.
    public func token(
        _ form: FormParameters, credentials: PresentedCredentials, realm: Realm, source: String,
        userAgent: String? = nil, proof presented: PresentedProof? = nil
    ) async throws(TokenError) -> TokenResponse {
        guard let grantType = form["grant_type"] else { throw .missing("grant_type") }
        guard let grant = grants[GrantType(rawValue: grantType)] else {
            throw TokenError(.unsupportedGrantType, "The grant type is not supported.")
        }
        try databaseClock.require()
        let authenticated = try clients.verify(form, credentials, realm: realm, source: source)
        let client = authenticated.client
        guard client.mayUse(grant.grantType) else {
            throw TokenError.mayNotUse("permission")
        }
        guard grant.isEnabled(in: realm) else {
            throw TokenError.isSwitchedOff("realm flag")
        }
        try realm.requireAdmission(of: client)
        guard presented != nil || !client.requiresDPoP else {
            throw TokenError(.invalidRequest, "The client must use DPoP.", reason: "require_dpop")
        }
        guard presented != nil || grant.proofRules == .standard else {
            throw TokenError(DPoPRefusal.invalid(reason: "no proof"))
        }
        // A refresh token of a confidential client is bound to the client already (RFC 9449 §5).
        let proof = try presented.map { presented throws(TokenError) in
            try proofs.verify(presented, realm: realm, binds: !client.isConfidential, rules: grant.proofRules)
        }
        func redeem() async throws -> TokenResponse {
            let contexts = try RequestedContexts(
                form["acr_values"], upTo: grant.highestContext,
                maximumAge: grant.takesMaximumAge ? form["max_age"] : nil)
            let access = try RequestedAccess(form, realm: realm, client: client, ignoringScope: grant.ignoresScope)
            let audience = grant.knowsScope ? try access.audience(of: access.scope, realm: realm, client: client) : []
            try grant.requireParameters(form)
            var context = RequestContext(
                realm: realm, client: client, source: credentials.forwardedSource(by: client) ?? source)
            context.proof = proof?.use
            context.nonce = proof?.nonceUse
            let request = TokenRequest(
                context: context,
                form: form, contexts: contexts, access: access, audience: audience, userAgent: userAgent)
            guard let proof else { return try await grant.redeem(request) }
            var response = try await proofs.using(in: realm) { try await grant.redeem(request) }
            response.nonce = proof.freshNonce
            return response
        }
        do {
            return try await clients.spending(authenticated, realm: realm, source: source, redeem)
        } catch {
            throw TokenError(error)
        }
    }
}
