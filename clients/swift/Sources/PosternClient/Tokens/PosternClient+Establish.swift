import Foundation

extension PosternClient {
    /// `scope` of a sign-in.
    nonisolated var scopeField: (String, String) { ("scope", configuration.scopes.joined(separator: " ")) }

    /// Stores the session that a sign-in opened. The session in its place ends here, and is revoked at the server.
    /// - Parameters:
    ///   - pending: the request that is over with it. When it was given up meanwhile, no session is opened.
    ///   - nonce: what the ID token must have, where the sign-in had one.
    ///   - subject: who must have signed in, if only one person may: another one's session is revoked.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with `invalid_response` for an ID token of another
    ///   issuer, client or request, with `different_user` for another person; ``PosternError/cancelled`` for a request that
    ///   was given up; ``PosternError/unavailable(retryAfter:)`` when it could not be stored.
    func establish(
        _ answer: TokenAnswer, finishing pending: String? = nil, nonce: String? = nil, subject: String? = nil
    ) async throws -> User {
        guard let idToken = answer.idToken, let user = idToken.user else {
            throw PosternError.unavailable(retryAfter: nil)
        }
        guard try await isOurs(idToken, nonce) else { throw try await refuse(answer, "invalid_response") }
        guard subject == nil || subject == user.id else { throw try await refuse(answer, "different_user") }
        try await store(
            answer, idToken, audience: .default, scopes: answer.token.scopes, finishing: pending, subject: subject)
        return user
    }

    /// Takes over the refresh token that an app kept by itself before it used this library. It is used once, so that the
    /// server gives out one that only this library knows; with a key, the session is bound to it from then on.
    ///
    /// Nothing is stored when the server refuses it: ``PosternError/signedOut(_:)`` with `ended` if the session is over.
    /// A caller that is cancelled leaves it running: the app's token is used then, and what came for it must be stored.
    /// - Parameter idToken: the last ID token, if the app has it. It vouches for this device should the server send none.
    public func adopt(refreshToken: String, idToken: String? = nil) async throws -> User {
        guard !refreshToken.isEmpty else { throw PosternError.misuse("refreshToken is empty") }
        return try await SharedTask { try await self.takeOver(refreshToken, idToken) }.value()
    }

    private func takeOver(_ refreshToken: String, _ idToken: String?) async throws -> User {
        var patience = Patience(until: surroundings.uptime() + Patience.ofRefresh)
        while true {
            let outcome = try await refreshOutcome(refreshToken, Audience.account)
            switch outcome {
            case .rotated(let answer):
                guard let token = answer.idToken ?? idToken.flatMap(IDToken.init), let user = token.user,
                    try await isOurs(token, nil)
                else { throw try await refuse(answer, "invalid_response") }
                // What the family was granted is not known: this answer has `openid` alone.
                try await store(answer, token, audience: .account, scopes: [], finishing: nil, subject: nil)
                return user
            case .lost(let retryAfter): try await wait(&patience, retryAfter)
            case .ended: throw PosternError.signedOut(.ended)
            case .refused(let error): throw error
            }
        }
    }

    private func store(
        _ answer: TokenAnswer, _ idToken: IDToken, audience: Audience, scopes: [String], finishing pending: String?,
        subject: String?
    ) async throws {
        let bound = answer.token.type == .dpop ? try await key(for: .device, in: document())?.thumbprint : nil
        let session = StoredSession(
            idToken: idToken.text, refreshToken: answer.refreshToken, scopes: scopes, key: bound)
        let audience = audience.served(by: scopes)
        let failure: PosternError? = try await change { document in
            // The server gives a lost answer of a sign-in again: that is the same session, not one to revoke.
            let isSame = document.session?.user?.sessionID == session.user?.sessionID
            let isGivenUp =
                !isSame && pending != nil && !document.pending.contains(where: { $0.id == pending })
            // A step-up is for the user who is signed in. It opens no session for a user who has signed out meanwhile.
            let hasLeft = subject != nil && subject != document.session?.user?.id
            if isGivenUp || hasLeft {
                document.toRevoke.append(answer.refreshToken ?? answer.token.value)
                return hasLeft ? .signedOut(document.session == nil ? document.reason : .byUser) : .cancelled
            }
            document.endSession(.never, revoking: !isSame)
            document.session = session
            document.hint = idToken.text
            document.keep(StoredToken(answer.token, audience: audience.name, issuedAt: answer.issuedAt))
            document.forget(pending: pending)
            return nil
        }
        revokeInBackground()
        if let failure { throw failure }
        remember(answer)
    }

    /// Revokes what a sign-in opened by mistake.
    private func refuse(_ answer: TokenAnswer, _ code: String) async throws -> PosternError {
        try await change { $0.toRevoke.append(answer.refreshToken ?? answer.token.value) }
        revokeInBackground()
        return .refused(code: code, description: nil, status: 200)
    }

    /// Whether an ID token is of this issuer, for this client, and of this request (OpenID Connect Core §3.1.3.7).
    private func isOurs(_ token: IDToken, _ nonce: String?) async throws -> Bool {
        guard token.audiences.contains(configuration.clientID), nonce == nil || token.nonce == nonce else {
            return false
        }
        if token.issuer == origin { return true }
        if token.issuer == (try await document().issuer) { return true }
        return token.issuer == (try await askIssuer())
    }

    /// `issuer` of the server: the realm's, also at the host of an App.
    func issuer() async throws -> String {
        if let known = try await document().issuer { return known }
        return try await askIssuer()
    }

    /// Asks the server's metadata (OpenID Connect Discovery §4).
    private func askIssuer() async throws -> String {
        let answer = try await accepted(Call(method: "GET", path: Path.discovery), as: .other)
        guard let issuer = answer.json?["issuer"]?.string else { throw PosternError.unavailable(retryAfter: nil) }
        try await change { $0.issuer = issuer }
        return issuer
    }
}
