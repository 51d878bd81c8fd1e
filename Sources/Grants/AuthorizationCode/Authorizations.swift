import Encoding
import Crypto
public import Persistence

/// The authorization endpoint behind its pages: reads requests, stores pushed ones, and answers them from the sessions
/// of browsers.
public struct Authorizations: Sendable {
    private let codes: AuthorizationCodeStore
    private let sessions: BrowserSessionStore
    private let limiter: RateLimiter
    private let keyring: Keyring

    /// Seconds in which a pushed request must be opened (RFC 9126 §2.2).
    public static let pushedLifetime = 120
    private static let requestURIPrefix = "urn:ietf:params:oauth:request_uri:"

    /// Creates the service.
    public init(
        codes: AuthorizationCodeStore, sessions: BrowserSessionStore, limiter: RateLimiter, keyring: Keyring
    ) {
        self.codes = codes
        self.sessions = sessions
        self.limiter = limiter
        self.keyring = keyring
    }

    /// Reads the request of a query, or the pushed one that it names: steps 2 to 13.
    /// - Throws: `AuthorizationRefusal`, or what the database threw.
    public func request(_ form: FormParameters, realm: Realm) async throws -> AuthorizationRequest {
        guard realm.hosted.isEnabled else { throw AuthorizationRefusal.page(.hostedDisabled) }
        guard let uri = form["request_uri"], uri.hasPrefix(Self.requestURIPrefix) else {
            return try AuthorizationRequest(
                AuthorizationRequest.Parameters(form, issuer: realm.issuer), realm: realm, from: .query)
        }
        guard let client = form["client_id"].flatMap({ realm.clients[$0] }), client.enabled, realm.admits(client)
        else { throw AuthorizationRefusal.page(.invalidClient) }
        return try await pushed(Self.id(uri), of: client, realm: realm, isUnderWay: false)
    }

    /// Reads the request of a query by the configuration alone.
    /// - Returns: `nil` for a pushed one and for a refused one.
    public func requestWithoutDatabase(_ form: FormParameters, realm: Realm) -> AuthorizationRequest? {
        guard form["request_uri"] == nil else { return nil }
        return try? AuthorizationRequest(
            AuthorizationRequest.Parameters(form, issuer: realm.issuer), realm: realm, from: .query)
    }

    /// Reads a stored request again, for a page that was shown for it.
    public func request(
        pushed id: [UInt8], of client: Client, realm: Realm
    ) async throws -> AuthorizationRequest {
        try await pushed(id, of: client, realm: realm, isUnderWay: true)
    }

    private func pushed(
        _ id: [UInt8]?, of client: Client, realm: Realm, isUnderWay: Bool
    ) async throws -> AuthorizationRequest {
        guard let id,
            let sealed = try await codes.open(
                realm: realm.id, idHash: id, client: client.key, isUnderWay: isUnderWay),
            let opened = try? keyring.open(
                sealed, for: .authorizationRequest, realm: realm.id, aad: Self.aad(realm, client, id))
        else { throw AuthorizationRefusal.page(.invalidRequestURI) }
        return try AuthorizationRequest(opened, realm: realm)
    }

    /// Stores the request that a client pushes (RFC 9126 §2.1). - Returns: its `request_uri`.
    /// - Parameter proof: of the key that the code is bound to (RFC 9449 §10.1); it is used up.
    /// - Throws: `TokenError` for a limit, `AuthorizationRefusal`, or what the database threw.
    public func push(
        _ form: FormParameters, by client: Client, realm: Realm, source: String, proof: ProofUse? = nil
    ) async throws -> String {
        let uri = Self.requestURIPrefix + Base64.urlEncode(randomBytes(32))
        let id = Self.hash(uri)
        // A client that authenticates by a header need not name itself in the form.
        let form = form.with("client_id", client.clientID)
        let request = try AuthorizationRequest(
            AuthorizationRequest.Parameters(form, issuer: realm.issuer, key: proof?.thumbprint), realm: realm,
            client: client, from: .pushed(id: id))
        // Anybody can push in the name of a public client: only requests of one that has authenticated are its own.
        let own = client.isConfidential ? [RateLimiter.Subject(.client, client.clientID)] : []
        try await store(
            request, id: id, realm: realm, source: source, counting: own, proof: proof)
        return uri
    }

    /// Stores a request that is too long for a query or for a sealed value. Anybody can send one, so that it does not
    /// count among those that the client pushes. - Returns: a `request_uri` for it.
    public func store(_ request: AuthorizationRequest, realm: Realm, source: String) async throws -> String {
        let uri = Self.requestURIPrefix + Base64.urlEncode(randomBytes(32))
        let id = Self.hash(uri)
        let kept = try AuthorizationRequest(
            request.parameters, realm: realm, client: request.client, from: .stored(id: id))
        try await store(kept, id: id, realm: realm, source: source)
        return uri
    }

    /// Stores a request that is too long for the state of a page, and opens it for that page.
    /// - Returns: the id by which the page names it (``request(pushed:of:realm:)``), 32 bytes.
    public func keep(_ request: AuthorizationRequest, realm: Realm, source: String) async throws -> [UInt8] {
        let id = Self.hash(try await store(request, realm: realm, source: source))
        _ = try await pushed(id, of: request.client, realm: realm, isUnderWay: false)
        return id
    }

    private func store(
        _ request: AuthorizationRequest, id: [UInt8], realm: Realm, source: String,
        counting own: [RateLimiter.Subject] = [], proof: ProofUse? = nil
    ) async throws {
        let encoded = try request.encodedToBeStored
        guard
            let sealed = try? keyring.seal(
                encoded, for: .authorizationRequest, realm: realm.id, aad: Self.aad(realm, request.client, id))
        else { throw TokenError.unavailable("seal") }
        let pushed = try await limiter.admitting(.par, [.init(.source, source)] + own, realm: realm) { permits in
            try await codes.push(
                realm: realm.id, idHash: id, client: request.client.key, source: source, sealed: sealed,
                lifetime: Int32(Self.pushedLifetime), proof: proof, permits: permits)
        }
        if case .full(let seconds) = pushed {
            throw TokenError.limited(
                .init(policy: .par, dimension: .source, retryAfterSeconds: max(1, Int(seconds.rounded(.up)))))
        }
    }

    /// What a browser gets for a request.
    public enum Answer: Sendable {
        /// A response for the client.
        case response(AuthorizationResponse)
        /// Something is due on a page first.
        case page(PageOutcome, BrowserSessionStore.Live?)
    }

    /// Step 14: answers a request from the session of a browser, as far as no page is needed (OpenID Connect Core
    /// §3.1.2.1, `prompt`).
    /// - Parameters:
    ///   - cookie: the session cookie that the browser showed.
    ///   - host: the host that it asked.
    /// - Returns: and the cookie that the browser is to get again.
    public func answer(
        _ request: AuthorizationRequest, cookie: BrowserCookie?, host: String, realm: Realm
    ) async throws -> (Answer, SessionCookie?) {
        let isSilent = request.prompts.contains(.none)
        guard let cookie, realm.hosted.singleSignOnIdle > 0,
            !request.prompts.contains(.login), !request.prompts.contains(.create), !request.provesAddressOnly
        else {
            guard isSilent else { return (.page(.login, nil), nil) }
            return (.response(try await refuse(request, .loginRequired, "Sign-in is required.", realm: realm)), nil)
        }
        let mayIssue = !request.hasNativeRedirect && !request.prompts.contains(.selectAccount)
        let answered = try await answer(
            request, cookie: cookie, host: host, realm: realm, code: mayIssue ? AuthorizationCode() : nil)
        // Another request for it was faster.
        if case .page(.used, _) = answered.0 { throw AuthorizationRefusal.page(.invalidRequestURI) }
        return answered
    }

    /// Answers a request from the session of a browser, on the wish of its user: the page `continue-as`, and after
    /// `consent`.
    /// - Parameters:
    ///   - isProved: the user of that session proved a factor for this request.
    ///   - consents: the user allows what the client wants, now.
    /// - Returns: and the cookie that the browser is to get again.
    public func confirm(
        _ request: AuthorizationRequest, cookie: BrowserCookie, host: String, realm: Realm, isProved: Bool,
        consents: Bool = false, offersPasskey: Bool = false
    ) async throws -> (Answer, SessionCookie?) {
        try await answer(
            request, cookie: cookie, host: host, realm: realm, code: AuthorizationCode(), isProved: isProved,
            consents: consents, offersPasskey: offersPasskey)
    }

    private func answer(
        _ request: AuthorizationRequest, cookie: BrowserCookie, host: String, realm: Realm, code: AuthorizationCode?,
        isProved: Bool = false, consents: Bool = false, offersPasskey: Bool = false
    ) async throws -> (Answer, SessionCookie?) {
        var wanted = request.codeRequest
        wanted.isProved = isProved
        wanted.codeHash = code.map(request.hash(of:))
        wanted.consents = consents
        wanted.offersPasskey = offersPasskey
        let standing = try await sessions.answer(
            realm: realm.id, cookieHash: cookie.hash, host: host, request: wanted)
        let renewed = standing.isCookieDue ? standing.session : nil
        return (
            try await answer(request, standing.outcome, code, standing.session, realm: realm),
            renewed.map { SessionCookie(cookie, of: realm, until: $0.expiresAt - $0.now) }
        )
    }

    /// The answer that goes with what a statement said; also for a sign-in on a page
    /// (``SignIn/verifyOnPage(_:and:_:opening:)``).
    /// - Parameter code: the one whose hash the statement was given.
    public func answer(
        _ request: AuthorizationRequest, _ outcome: PageOutcome, _ code: AuthorizationCode?,
        _ session: BrowserSessionStore.Live?, realm: Realm
    ) async throws -> Answer {
        switch outcome {
        case .issued:
            guard let code else { throw TokenError.unavailable("a code without its text") }
            return .response(.code(code.text, to: request.target))
        case .used: return .page(.used, session)
        case .closed:
            return .response(
                try await refuse(
                    request, .unauthorizedClient, "The client may not use this grant type.", realm: realm))
        case .login, .account, .acr, .offerPasskey, .consent, .continue, .profile, .secondProof, .registrationClosed:
            guard request.prompts.contains(.none) else { return .page(outcome, session) }
            return switch outcome {
            case .login, .account:
                .response(try await refuse(request, .loginRequired, "Sign-in is required.", realm: realm))
            case .consent:
                .response(try await refuse(request, .consentRequired, "Consent is required.", realm: realm))
            default:
                .response(try await refuse(request, .interactionRequired, "Interaction is required.", realm: realm))
            }
        }
    }

    /// The error response to a request; a pushed one is used up by it.
    public func refuse(
        _ request: AuthorizationRequest, _ error: AuthorizationError, _ description: String, realm: Realm
    ) async throws -> AuthorizationResponse {
        if let id = request.pushedID, try await !codes.use(realm: realm.id, idHash: id) {
            throw AuthorizationRefusal.page(.invalidRequestURI)
        }
        return .failure(error, description, to: request.target)
    }

    private static func id(_ uri: String) -> [UInt8]? {
        uri.utf8.count == requestURIPrefix.utf8.count + 43 ? hash(uri) : nil
    }

    private static func hash(_ uri: String) -> [UInt8] { Array(SHA256.hash(data: Array(uri.utf8))) }

    private static func aad(_ realm: Realm, _ client: Client, _ id: [UInt8]) -> [UInt8] {
        Array("authorization request".utf8) + realm.id.bytes + client.key.bytes + id
    }
}

extension AuthorizationRequest {
    /// As the statements that answer it take it.
    public var codeRequest: AuthorizationCodeRequest {
        var request = AuthorizationCodeRequest(
            client: client.key, redirectURI: redirectURI, codeChallenge: codeChallenge, scope: scope,
            resources: audience, nonce: nonce, acrValues: acrValues, maximumAge: maximumAge, user: hintedUser,
            asksConsent: prompts.contains(.consent), pushedRequest: pushedID, proof: wantedProof?.kind.rawValue,
            thumbprint: thumbprint)
        request.wantsLogin = prompts.contains(.login)
        return request
    }
}

extension AuthorizationRequest {
    /// The answer when this server has a fault of its own and the request wants no page.
    public var temporarilyUnavailable: AuthorizationResponse {
        .failure(.temporarilyUnavailable, "The service is temporarily unavailable.", to: target)
    }
}

extension RateLimit.Policy {
    /// `/connect/authorize`, counted in this process alone.
    public static let authorize = Self(rawValue: "authorize")
    /// `/connect/par`.
    static let par = Self(rawValue: "par")
}
