import Crypto
public import Encoding
public import Persistence

/// `authorization_code` (RFC 6749 §4.1.3) with PKCE (RFC 7636 §4.5).
public struct AuthorizationCodeGrant: Grant {
    /// `authorization_code`.
    public let grantType = GrantType.authorizationCode
    /// The scope was fixed at the authorization endpoint.
    public let ignoresScope = true
    /// It is the code's, which only the statement knows.
    public let knowsScope = false

    private let codes: AuthorizationCodeStore
    private let addresses: AddressTokenStore
    private let issuer: TokenIssuer
    private let limiter: RateLimiter

    /// Creates the grant.
    public init(
        codes: AuthorizationCodeStore, addresses: AddressTokenStore, issuer: TokenIssuer, limiter: RateLimiter
    ) {
        self.codes = codes
        self.addresses = addresses
        self.issuer = issuer
        self.limiter = limiter
    }

    /// While the realm has pages.
    public func isEnabled(in realm: Realm) -> Bool { realm.hosted.isEnabled }

    /// What a realm with pages offers (RFC 8414 §2, RFC 9126 §5, RFC 9207 §3, OpenID Connect Discovery §3).
    public func describe(in metadata: inout JSONWriter, for realm: Realm) {
        let origin = realm.endpointOrigin
        metadata.member("authorization_endpoint", origin + "/connect/authorize")
        metadata.member("pushed_authorization_request_endpoint", origin + "/connect/par")
        metadata.member("end_session_endpoint", origin + "/connect/logout")
        metadata.member("response_modes_supported", ["query", "form_post"])
        metadata.member("code_challenge_methods_supported", ["S256"])
        metadata.member("authorization_response_iss_parameter_supported", true)
        metadata.member(
            "prompt_values_supported",
            ["none", "login", "consent", "select_account"] + (realm.registration == .off ? [] : ["create"]))
        metadata.member("ui_locales_supported", Hosted.locales)
        metadata.member("backchannel_logout_supported", true)
        metadata.member("backchannel_logout_session_supported", true)
        metadata.member("request_parameter_supported", false)
        // Its default is true (OpenID Connect Discovery §3).
        metadata.member("request_uri_parameter_supported", false)
        metadata.member("claims_parameter_supported", false)
        metadata.member("require_pushed_authorization_requests", false)
        metadata.member("op_policy_uri", realm.brand.privacyURI)
        metadata.member("op_tos_uri", realm.brand.termsURI)
    }

    /// `code`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["code"] != nil else { throw .missing("code") }
    }

    /// Consumes the code and opens the session that it was issued for.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let (realm, client) = (request.realm, request.client)
        // Only the statement knows whether the scope holds openid and offline_access: prepare for both.
        let signingKey = try await issuer.prepare(realm: realm, client: client, scope: ["openid"])
        let session = UUIDValue.random()
        guard let code = AuthorizationCode(request.form["code"] ?? "") else {
            try await limiter.count(.token, request.subjects, realm: realm, spending: request.proof)
            throw Self.refused("malformed")
        }
        let presented = AuthorizationCodeStore.Presented(
            realm: realm.id, client: client.key, codeHash: code.hash, redirectURI: request.form["redirect_uri"],
            codeChallenge: request.form["code_verifier"].map(Self.challenge(of:)),
            resources: request.access.resources.isEmpty ? nil : request.access.resources, proof: request.proof)
        if code.provesAddress, let signingKey {
            return try await redeem(presented, provingAddressAs: session, request, signingKey)
        }
        let refreshToken = RefreshToken.first(realm: realm.id, session: session, keyring: issuer.keyring)
        var new = NewSession(
            id: session, tokenSalt: randomBytes(16), refreshHash: refreshToken.hash, scope: [], resources: [], amr: [],
            accessTokenLifetime: Int32(clamping: realm.accessTokenLifetime(for: client)),
            refreshTokenLifetime: Int32(clamping: realm.refreshTokenLifetime(for: client)), source: request.source,
            serverKey: issuer.keyring.newest.id)
        new.userAgent = request.userAgent
        new.proof = request.proof
        new.app = realm.app?.slug
        let opened = new
        let outcome = try await limiter.admitting(.token, request.subjects, realm: realm) { permits in
            try await codes.redeem(presented, session: opened, permits: permits)
        }
        switch outcome {
        case .redeemed(let redeemed):
            return try issuer.issue(
                Authentication(
                    session: session, user: redeemed.user, amr: redeemed.amr, authTime: Int(redeemed.authTime),
                    scope: redeemed.scope, audience: redeemed.resources,
                    refreshToken: redeemed.hasRefreshToken ? refreshToken : nil, tokenSalt: new.tokenSalt,
                    sessionExpiresAt: Int(redeemed.sessionExpiresAt), now: Int(redeemed.now), nonce: redeemed.nonce,
                    acr: redeemed.acr, thumbprint: request.proof?.thumbprint),
                realm: realm, client: client, signingKey: signingKey)
        case .invalidTarget: throw RequestedAccess.invalidTarget("not the code's")
        case .refused(let reason): throw Self.refused(reason)
        }
    }

    /// Consumes the code of a proven address, which opens no session of an account.
    private func redeem(
        _ presented: AuthorizationCodeStore.Presented, provingAddressAs session: UUIDValue, _ request: TokenRequest,
        _ signingKey: SigningKey
    ) async throws -> TokenResponse {
        let salt = randomBytes(16)
        let outcome = try await limiter.admitting(.token, request.subjects, realm: request.realm) { permits in
            try await addresses.redeem(
                presented, session: session, tokenSalt: salt, source: request.source, permits: permits)
        }
        switch outcome {
        case .redeemed(let redeemed):
            return try issuer.issue(
                redeemed, session: session, tokenSalt: salt, realm: request.realm, client: request.client,
                thumbprint: request.proof?.thumbprint, signingKey: signingKey)
        case .invalidTarget: throw RequestedAccess.invalidTarget("not the code's")
        case .refused(let reason): throw Self.refused(reason)
        }
    }

    /// `S256` (RFC 7636 §4.2). What cannot be a verifier hashes to nothing that a code has.
    static func challenge(of verifier: String) -> String {
        let isVerifier =
            (43...128).contains(verifier.utf8.count)
            && verifier.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                    UInt8(ascii: "~"):
                    true
                default: false
                }
            }
        return isVerifier ? Base64.urlEncode(Array(SHA256.hash(data: Array(verifier.utf8)))) : ""
    }

    private static func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "Invalid or expired code.", reason: reason)
    }
}
