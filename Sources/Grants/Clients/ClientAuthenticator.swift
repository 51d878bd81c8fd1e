public import Persistence

/// Authenticates clients at the endpoints they call themselves: by secret, by assertion, or as public ones by name.
public struct ClientAuthenticator: Sendable {
    private let assertions: ClientAssertionStore
    private let limiter: RateLimiter
    private let checks = AssertionChecks()
    private let clock: @Sendable () -> Double

    /// What discovery says of it.
    public static let methods = ["client_secret_post", "client_secret_basic", "private_key_jwt"]
    /// `token_endpoint_auth_signing_alg_values_supported`.
    public static let algorithms = ClientKey.Algorithm.allCases.map(\.rawValue)

    /// - Parameters:
    ///   - limiter: knows which sources have used up their refused calls.
    ///   - clock: seconds since the epoch.
    public init(assertions: ClientAssertionStore, limiter: RateLimiter, clock: @escaping @Sendable () -> Double) {
        self.assertions = assertions
        self.limiter = limiter
        self.clock = clock
    }

    /// Authenticates the client of a request. An assertion is used up here, also when the request fails later.
    /// - Parameter source: where the request came from.
    /// - Throws: `invalid_request` for two methods or half of one, `rate_limited` for an assertion from a source with
    ///   too many refused calls, else `invalid_client` with one text.
    public func authenticate(
        _ form: FormParameters, _ credentials: ClientCredentials, realm: Realm, source: String
    ) async throws(TokenError) -> Client {
        guard form["client_assertion"] != nil || form["client_assertion_type"] != nil else {
            return try realm.authenticate(form, credentials)
        }
        guard let text = form["client_assertion"], let type = form["client_assertion_type"] else {
            throw TokenError(
                .invalidRequest, "client_assertion and client_assertion_type go together.", reason: "half an assertion")
        }
        guard case .none = credentials.header, form["client_secret"] == nil else {
            throw TokenError(.invalidRequest, "Use one way to authenticate the client.", reason: "two credentials")
        }
        guard type == ClientAssertion.type, let assertion = ClientAssertion(text) else {
            throw Realm.invalidClient("assertion: malformed")
        }
        guard form["client_id"].map({ $0 == assertion.clientID }) ?? true else {
            throw TokenError(.invalidRequest, "client_id differs from the authenticated client.", reason: "two clients")
        }
        guard let client = realm.clients[assertion.clientID], client.enabled, client.isConfidential else {
            throw Realm.invalidClient("assertion: unknown, disabled or public")
        }
        if let limit = limiter.standingRefusal(.refused, [.init(.source, source)], realm: realm),
            !checks.admits(client.key, realm: realm.id, source: source)
        {
            throw .limited(limit)
        }
        // The issuer is what RFC 7523 is being narrowed to. The token endpoint is what OpenID Connect Core §9 told
        // clients to send.
        let audiences = [realm.issuer, realm.issuer + "/connect/token", realm.endpointOrigin + "/connect/token"]
        let use: ClientAssertion.Use
        switch assertion.verify(for: client, audiences: audiences, now: clock()) {
        case .success(let verified): use = verified
        case .failure(let refusal): throw Realm.invalidClient(refusal.reason)
        }
        let isFirst: Bool
        do {
            isFirst = try await assertions.spend(realm: realm.id, id: use.id, expiresAt: use.expiresAt)
        } catch {
            throw TokenError(error)
        }
        guard isFirst else { throw Realm.invalidClient("assertion: used before") }
        checks.succeeded(client.key, realm: realm.id, source: source)
        return client
    }
}
