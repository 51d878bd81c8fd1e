public import Encoding
public import Persistence

/// `urn:openid:params:grant-type:ciba` (CIBA Core 1.0 §10.1). What the tokens are for was fixed when the client asked.
public struct ApprovalGrant: Grant {
    /// `urn:openid:params:grant-type:ciba`.
    public let grantType = GrantType.ciba
    /// The request for approval had it.
    public let knowsScope = false
    /// The request for approval had it.
    public let ignoresScope = true

    private let signIn: SignIn<ApprovalFactor>
    private let issuer: TokenIssuer

    /// Polls `store`.
    public init(store: ApprovalStore, _ services: SignInServices, issuer: TokenIssuer) {
        signIn = SignIn(by: ApprovalFactor(store: store, keyring: issuer.keyring), services)
        self.issuer = issuer
    }

    /// Gated by the realm's switch for approvals.
    public func isEnabled(in realm: Realm) -> Bool { realm.approvals.isEnabled }

    /// CIBA Core 1.0 §4.
    public func describe(in metadata: inout JSONWriter, for realm: Realm) {
        metadata.member("backchannel_authentication_endpoint", realm.endpointOrigin + "/connect/bc-authorize")
        metadata.member("backchannel_token_delivery_modes_supported", ["poll"])
        metadata.member("backchannel_user_code_parameter_supported", false)
    }

    /// `auth_req_id`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        try signIn.factor.requireParameters(form)
    }

    /// Polls; after the approval it opens the session and mints the tokens.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        try await redeem(
            signIn.factor.read(request.form, request.context), and: SecondFactorCode(request.form), request.context,
            userAgent: request.userAgent, seed: SignInSeed(request, keyring: issuer.keyring))
    }

    /// The same by a handle that was opened.
    /// - Parameters:
    ///   - handle: `nil` for an invalid one.
    ///   - seed: of a request that may come again.
    func redeem(
        _ handle: AuthenticationRequestHandle?, and second: SecondFactorCode?, _ context: RequestContext,
        userAgent: String?, seed: SignInSeed? = nil
    ) async throws -> TokenResponse {
        let access = RequestedAccess(scope: handle?.scope ?? [], resources: handle?.resources ?? [])
        let new = try await NewSignIn(
            context,
            contexts: try RequestedContexts(
                handle?.contexts.map(\.rawValue).joined(separator: " "), upTo: .phishingResistant),
            scope: access.scope,
            audience: try access.audience(of: access.scope, realm: context.realm, client: context.client),
            userAgent: userAgent, seed: seed, issuer: issuer)
        return try new.respond(
            try await signIn.verify(handle, and: second, context, opening: new.record(amr:)))
    }
}
