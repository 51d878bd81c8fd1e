import Foundation

extension PosternClient {
    /// Signs in on the pages of the server: authorization code flow with PKCE (RFC 6749 §4.1, RFC 7636). Needs
    /// ``PosternConfiguration/redirectURI``.
    /// - Throws: ``PosternError/denied`` when the person refused on the page, ``PosternError/cancelled`` when they closed it;
    ///   ``PosternError/refused(code:description:status:)`` with `invalid_response` for an answer of another sign-in.
    public func signIn(onPages browser: any PageBrowser, options: PageOptions = PageOptions()) async throws -> User {
        try await signIn(onPages: browser, options: options, subject: nil)
    }

    func signIn(onPages browser: any PageBrowser, options: PageOptions, subject: String?) async throws -> User {
        guard let registered = configuration.redirectURI else {
            throw PosternError.misuse("set redirectURI of the configuration, as it is registered for the client")
        }
        let issuer = try await issuer()
        let request = PageRequest(
            redirect: try await PosternError.ofDialog { try await browser.redirect(for: registered) })
        let document = try await document()
        let page = request.url(
            at: origin, clientID: configuration.clientID, scopes: configuration.scopes,
            thumbprint: try await key(for: .session, in: document)?.thumbprint,
            // Only the person of the session may step up.
            hint: subject == nil ? nil : document.hint, options: options)
        guard let page else { throw PosternError.misuse("the redirect URI is no URL") }
        let returned = try await PosternError.ofDialog { try await browser.open(page, until: request.redirect) }
        let form = [
            ("grant_type", GrantType.authorizationCode), ("code", try request.code(in: returned, issuer: issuer)),
            ("redirect_uri", request.redirect.absoluteString), ("code_verifier", request.verifier),
        ]
        // Once only: a code that comes again ends the session that it opened.
        let answer = try await token(form, as: .other)
        return try await establish(answer, nonce: request.nonce, subject: subject)
    }
}
