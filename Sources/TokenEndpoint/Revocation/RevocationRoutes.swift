import Grants
import HTTPTypes
import Persistence

/// `POST /connect/revoke` (RFC 7009): an unknown or foreign token is answered 200 without effect (§2.2).
struct RevocationRoutes: Sendable {
    let clients: ClientAuthenticator
    let verifier: AccessTokenVerifier
    let keyring: Keyring
    let sessions: SessionStore
    let accounts: ServiceAccountStore
    let clock: @Sendable () -> Double

    var routes: [Route] { [Route("/connect/revoke", [.post: { try await revoke($0) }])] }

    private func revoke(_ exchange: Exchange) async throws -> Answer {
        let (form, client) = try await clients.authenticate(exchange)
        guard let token = form["token"] else { throw TokenError.missing("token") }
        // Whatever goes wrong is thrown: never 200 for a revocation that may not have happened.
        try await revoke(token, exchange.realm, client)
        return Answer(.ok)
    }

    /// A refresh token ends its whole family, an access token only itself.
    private func revoke(_ text: String, _ realm: Realm, _ client: Client) async throws {
        if let refreshToken = RefreshToken(text, realm: realm.id, keyring: keyring) {
            try await sessions.revoke(
                realm: realm.id, client: client.key, session: refreshToken.session, reason: "token_revoked")
            return
        }
        switch try await verifier.identify(text, realm: realm, now: clock()) {
        case .user(let verified):
            let token = verified.token
            try await sessions.revokeAccessToken(
                realm: realm.id, client: client.key, session: token.session, jti: token.jti,
                expiresAt: Double(token.expiresAt))
        case .service(let verified):
            let token = verified.token
            try await accounts.revoke(
                realm: realm.id, client: client.key, account: verified.account.id, jti: token.jti,
                expiresAt: Double(token.expiresAt))
        case nil: break
        }
    }
}
