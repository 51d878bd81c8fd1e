import Encoding
import Crypto
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

    /// A client, and its assertion while that is not used up.
    public struct Authenticated: Sendable {
        /// The client.
        public let client: Client
        fileprivate let assertion: ClientAssertion.Use?
    }

    /// Authenticates the client of a request, and uses up its assertion, also when the request fails later.
    /// - Throws: as ``verify(_:_:realm:source:endpoint:)`` and ``spend(_:realm:source:)``.
    public func authenticate(
        _ form: FormParameters, _ credentials: PresentedCredentials, realm: Realm, source: String,
        endpoint: String = "/connect/token"
    ) async throws(TokenError) -> Client {
        let verified = try verify(form, credentials, realm: realm, source: source, endpoint: endpoint)
        try await spend(verified, realm: realm, source: source)
        return verified.client
    }

    /// Authenticates the client of a request without using up its assertion. A caller that takes a proof of possession
    /// checks the proof next and then calls ``spending(_:realm:source:_:)``, so that a client that is told to use a
    /// nonce can send the same assertion again.
    /// - Parameters:
    ///   - source: where the request came from.
    ///   - endpoint: the path of the endpoint asked.
    /// - Throws: `invalid_request` for two methods or half of one, `rate_limited` for an assertion from a source with
    ///   too many refused calls, else `invalid_client` with one text.
    public func verify(
        _ form: FormParameters, _ credentials: PresentedCredentials, realm: Realm, source: String,
        endpoint: String = "/connect/token"
    ) throws(TokenError) -> Authenticated {
        guard form["client_assertion"] != nil || form["client_assertion_type"] != nil else {
            return Authenticated(client: try realm.authenticate(form, credentials), assertion: nil)
        }
        guard let text = form["client_assertion"], let type = form["client_assertion_type"] else {
            throw TokenError(
                .invalidRequest, "client_assertion and client_assertion_type go together.", reason: "half an assertion")
        }
        guard case .none = credentials.header, form["client_secret"] == nil else {
            throw TokenError(.invalidRequest, "Use one way to authenticate the client.", reason: "two credentials")
        }
        guard type == ClientAssertion.type, let assertion = ClientAssertion(text) else {
            throw TokenError.invalidClient("assertion: malformed")
        }
        guard form["client_id"].map({ $0 == assertion.clientID }) ?? true else {
            throw TokenError(.invalidRequest, "client_id differs from the authenticated client.", reason: "two clients")
        }
        guard let client = realm.clients[assertion.clientID], client.enabled, client.isConfidential else {
            throw TokenError.invalidClient("assertion: unknown, disabled or public")
        }
        if let limit = limiter.standingRefusal(.refused, [.init(.source, source)], realm: realm),
            !checks.admits(client.key, realm: realm.id, source: source)
        {
            throw .limited(limit)
        }
        // The issuer is what RFC 7523 is being narrowed to. The token endpoint is what OpenID Connect Core §9 told
        // clients to send, and RFC 9126 §2 adds the endpoint that is asked.
        let audiences =
            [realm.issuer]
            + Set(["/connect/token", endpoint]).flatMap { [realm.issuer + $0, realm.endpointOrigin + $0] }
        switch assertion.verify(for: client, audiences: audiences, now: clock()) {
        case .success(let verified): return Authenticated(client: client, assertion: verified)
        case .failure(let refusal): throw TokenError.invalidClient(refusal.reason)
        }
    }

    /// Uses up the assertion of a request, then runs the body, which uses up the request's proof of possession. If the
    /// body refuses the proof, the assertion becomes unused again, so that the client can send it with another proof.
    /// - Throws: as ``spend(_:realm:source:)``, or what the body threw.
    public func spending<R>(
        _ authenticated: Authenticated, realm: Realm, source: String, _ body: () async throws -> R
    ) async throws -> R {
        try await spend(authenticated, realm: realm, source: source)
        do {
            return try await body()
        } catch {
            if let use = authenticated.assertion, TokenError(error).isOfProof {
                // If this fails, the assertion stays used, and the next request with it gets `invalid_client`.
                try? await assertions.giveBack(realm: realm.id, id: use.id)
            }
            throw error
        }
    }

    /// Uses up the assertion of a request, if it came with one. - Throws: `invalid_client` when it was used before.
    public func spend(_ authenticated: Authenticated, realm: Realm, source: String) async throws(TokenError) {
        guard let use = authenticated.assertion else { return }
        let isFirst: Bool
        do {
            isFirst = try await assertions.spend(realm: realm.id, id: use.id, expiresAt: use.expiresAt)
        } catch {
            throw TokenError(error)
        }
        guard isFirst else { throw TokenError.invalidClient("assertion: used before") }
        checks.succeeded(authenticated.client.key, realm: realm.id, source: source)
    }
}

extension Realm {
    /// Authenticates the client of a request by `client_id` and secret (RFC 6749 §2.3.1).
    ///
    /// - Throws: `invalid_request` for two credentials, else `invalid_client` with one text for unknown, disabled,
    ///   wrong or missing secret and a secret sent by a public client.
    public func authenticate(
        _ form: FormParameters, _ credentials: PresentedCredentials
    ) throws(TokenError) -> Client {
        let (clientID, secret) = try identity(form, credentials)
        guard let clientID else { throw TokenError.invalidClient("client_id is missing") }
        let client = clients[clientID]
        // The comparison runs for unknown clients too, so that time does not tell them apart.
        let secretMatches = Self.matches(secret ?? "", client?.secretHashes ?? [])
        guard let client, client.enabled else { throw TokenError.invalidClient("unknown or disabled") }
        if client.isConfidential {
            guard secret != nil, secretMatches else { throw TokenError.invalidClient("secret") }
        } else if secret != nil {
            throw TokenError.invalidClient("secret from a public client")
        }
        return client
    }

    private func identity(
        _ form: FormParameters, _ credentials: PresentedCredentials
    ) throws(TokenError) -> (clientID: String?, secret: String?) {
        guard form["client_assertion"] == nil, form["client_assertion_type"] == nil else {
            throw TokenError.invalidClient("client_assertion")
        }
        switch credentials.header {
        case .none:
            return (form["client_id"], form["client_secret"])
        case .unusable:
            throw TokenError.invalidClient("authorization header")
        case .basic(let basic):
            guard form["client_secret"] == nil else {
                throw TokenError(.invalidRequest, "Use one way to authenticate the client.", reason: "two credentials")
            }
            guard form["client_id"].map({ $0 == basic.clientID }) ?? true else {
                throw TokenError(
                    .invalidRequest, "client_id differs from the authenticated client.", reason: "two clients")
            }
            return (basic.clientID, basic.secret.isEmpty ? nil : basic.secret)
        }
    }

    /// Compares in constant time against the stored hashes, or against a dummy when there is none.
    private static func matches(_ secret: String, _ hashes: [[UInt8]]) -> Bool {
        let presented = Array(SHA256.hash(data: Array(secret.utf8)))
        var matched = false
        for hash in hashes.isEmpty ? [[UInt8](repeating: 0, count: 32)] : hashes
        where constantTimeEqual(presented, hash) {
            matched = true
        }
        return matched
    }
}
