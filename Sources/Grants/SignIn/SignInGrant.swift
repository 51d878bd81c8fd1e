/// A native grant: a sign-in by a factor, answered with tokens.
public struct SignInGrant<F: Factor>: Grant {
    /// The factor's.
    public var grantType: GrantType { signIn.factor.grantType }
    /// As the factor is.
    public func isEnabled(in realm: Realm) -> Bool { signIn.factor.isEnabled(in: realm) }

    /// The factor's.
    public var proofRules: DPoPRules { signIn.factor.proofRules }

    /// The factor's.
    public var highestContext: AuthenticationContext? { signIn.factor.highestContext }

    private let signIn: SignIn<F>
    private let issuer: TokenIssuer

    /// The grant that redeems `factor`.
    public init(_ factor: F, _ services: SignInServices, issuer: TokenIssuer) {
        signIn = SignIn(by: factor, services)
        self.issuer = issuer
    }

    /// The factor's.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        try signIn.factor.requireParameters(form)
    }

    /// Prepares everything that may fail, signs in, and mints the tokens.
    public func redeem(_ request: TokenRequest) async throws -> TokenResponse {
        let new = try await NewSignIn(
            request, isRepeatable: signIn.factor.isRepeatable(request.form, request.context), issuer: issuer)
        let presented = signIn.factor.read(request.form, request.context)
        return try new.respond(
            try await signIn.verify(
                presented, and: SecondFactorCode(request.form), request.context, opening: new.record(amr:)))
    }
}
