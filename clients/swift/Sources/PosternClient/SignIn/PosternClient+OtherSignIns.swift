import Foundation

extension PosternClient {
    /// Signs the person of this trusted device in, without a message and without a dialog. The device has to be off
    /// probation: see ``TrustedDevice``.
    public func signInAsTrustedDevice(secondFactor: SecondFactor? = nil) async throws -> User {
        let form = [("grant_type", GrantType.trustedDevice), scopeField] + [secondFactor?.field].compactMap { $0 }
        // The nonce of such a proof signs in once, so this is sent once.
        let answer = try await token(form, as: .other, proof: .device, spendsNonce: true)
        return try await establish(answer)
    }

    /// Begins a sign-in with Apple, Google or another OpenID provider: the nonce is for the provider's dialog.
    /// - Parameter provider: its name at the server.
    public func beginProvider(_ provider: String) async throws -> ProviderRequest {
        let answer = try await post("/connect/federated/begin", form: [("provider", provider)])
        guard let handle = answer.json?["auth_session"]?.string, let nonce = answer.json?["nonce"]?.string,
            let life = answer.json?["expires_in"]?.seconds
        else { throw PosternError.unavailable(retryAfter: nil) }
        let pending = PendingRequest(.provider, handle: handle, lifetime: life, at: surroundings.now())
        try await change { $0.keep(pending) }
        return ProviderRequest(id: pending.id, provider: provider, nonce: nonce, expiresAt: pending.expiresAt)
    }

    /// Signs in with what the provider's dialog gave out (RFC 8693).
    /// - Throws: ``PosternError/addressProofNeeded``: sign in another way, then ``Account/add(_:for:)`` with the same request
    ///   and proof. ``PosternError/namesNeeded(_:)``: call again with names.
    public func signIn(
        _ proof: ProviderProof, for request: ProviderRequest, secondFactor: SecondFactor? = nil
    ) async throws -> User {
        let pending = try await providerRequest(request)
        var form = [
            ("grant_type", GrantType.tokenExchange), ("subject_token", proof.identityToken),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"), ("auth_session", pending.handle),
            scopeField,
        ]
        if let code = proof.authorizationCode { form.append(("authorization_code", code)) }
        if let name = proof.names?.first { form.append(("first_name", name)) }
        if let name = proof.names?.last { form.append(("last_name", name)) }
        let answer = try await token(
            form + [secondFactor?.field].compactMap { $0 }, as: .other, repeats: .whileLost)
        return try await establish(answer, finishing: pending.id)
    }

    func providerRequest(_ request: ProviderRequest) async throws -> PendingRequest {
        guard let pending = try await pendingRequest(request.id), pending.knownKind == .provider else {
            throw PosternError.misuse("the request is over: begin with beginProvider")
        }
        return pending
    }

    /// Signs the present user in again, newer or stronger than before, as a server asked for (RFC 9470). The new session
    /// takes the place of the old one.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with `different_user` when somebody else signed in: then
    ///   the old session stays, and the other one is revoked.
    public func stepUp(_ challenge: StepUpChallenge, by method: StepUpMethod) async throws -> User {
        let document = try await document()
        guard let user = document.session?.user else { throw PosternError.signedOut(document.reason) }
        let demand = Demand(levels: challenge.levels, subject: user.id)
        switch method {
        case .code(let code, let request, let secondFactor):
            return try await signIn(code: code, for: request, secondFactor: secondFactor, demand)
        case .passkey(let dialog):
            return try await signIn(with: dialog, style: .dialog, demand)
        case .pages(let browser):
            var options = PageOptions()
            options.levels = challenge.levels
            options.maxAge = challenge.maxAge
            return try await signIn(onPages: browser, options: options, subject: user.id)
        }
    }
}
