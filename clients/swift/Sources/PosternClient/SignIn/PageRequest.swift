import Foundation

/// An authorization request of the pages: code flow with PKCE (RFC 6749 §4.1, RFC 7636).
struct PageRequest: Sendable {
    let redirect: URL
    /// Comes back with the answer.
    let state: String
    /// Comes back in the ID token.
    let nonce: String
    /// `code_verifier`.
    let verifier: String

    init(redirect: URL) {
        self.redirect = redirect
        state = Self.random()
        nonce = Self.random()
        verifier = Self.random()
    }

    /// The address of the page.
    /// - Parameters:
    ///   - origin: of the server, without a trailing slash.
    ///   - thumbprint: of the key that the code is to be bound to (RFC 9449 §10).
    ///   - hint: an ID token of the person that the request is for.
    func url(
        at origin: String, clientID: String, scopes: [String], thumbprint: String?, hint: String? = nil,
        options: PageOptions
    ) -> URL? {
        var members = [
            ("response_type", "code"), ("client_id", clientID), ("redirect_uri", redirect.absoluteString),
            ("scope", scopes.joined(separator: " ")), ("state", state), ("nonce", nonce),
            ("code_challenge", Base64URL.encode(Digest.sha256(Data(verifier.utf8)))), ("code_challenge_method", "S256"),
        ]
        if let thumbprint { members.append(("dpop_jkt", thumbprint)) }
        if let hint { members.append(("id_token_hint", hint)) }
        if let hint = options.loginHint { members.append(("login_hint", hint)) }
        if let prompt = options.prompt { members.append(("prompt", prompt)) }
        if let age = options.maxAge { members.append(("max_age", "\(age)")) }
        if !options.levels.isEmpty { members.append(("acr_values", options.levels.joined(separator: " "))) }
        if !options.locales.isEmpty { members.append(("ui_locales", options.locales.joined(separator: " "))) }
        return URL(string: "\(origin)/connect/authorize?\(Form.encode(members))")
    }

    /// The code of the answer at the redirect URI.
    /// - Parameter issuer: of the server (RFC 9207).
    /// - Throws: ``PosternError/denied`` when the person cancelled; ``PosternError/refused(code:description:status:)``
    ///   otherwise, with `invalid_response` if the answer is not one to this request.
    func code(in returned: URL, issuer: String) throws -> String {
        guard let parts = URLComponents(url: returned, resolvingAgainstBaseURL: false), isAtRedirect(parts),
            parts.only("state") == state, parts.only("iss") == issuer
        else { throw PosternError.invalidResponse }
        let names = Set((parts.queryItems ?? []).map(\.name))
        if names.contains("error") {
            guard let error = parts.only("error"), !names.contains("code") else { throw PosternError.invalidResponse }
            if error == "access_denied" { throw PosternError.denied }
            throw PosternError.refused(code: error, description: parts.only("error_description"), status: 303)
        }
        guard let code = parts.only("code") else { throw PosternError.invalidResponse }
        return code
    }

    /// Whether a URL is the redirect URI with members added to its query.
    private func isAtRedirect(_ parts: URLComponents) -> Bool {
        guard let own = URLComponents(url: redirect, resolvingAgainstBaseURL: false) else { return false }
        func path(_ parts: URLComponents) -> String {
            parts.host != nil && parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        }
        return parts.scheme?.lowercased() == own.scheme?.lowercased()
            && parts.host?.lowercased() == own.host?.lowercased()
            && parts.port == own.port && path(parts) == path(own)
    }

    /// 256 bits.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64URL.encode((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}

extension PosternError {
    /// What came back is not the answer to what was asked.
    static let invalidResponse = refused(
        code: "invalid_response", description: "The answer does not belong to this sign-in.", status: 0)
}
