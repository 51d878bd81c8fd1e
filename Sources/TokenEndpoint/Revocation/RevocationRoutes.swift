import Grants
import HTTPTypes

/// `POST /connect/revoke` (RFC 7009): an unknown or foreign token is answered 200 without effect (§2.2).
struct RevocationRoutes: Sendable {
    let clients: ClientAuthenticator
    let revoker: TokenRevoker
    let clock: @Sendable () -> Double

    var routes: [Route] {
        [
            Route("/connect/revoke", [.post: .client(clients) { try await revoke($0, $1) }]).cors(.clients).logged(
                as: "revocation")
        ]
    }

    private func revoke(_ exchange: Exchange, _ caller: CallingClient) async throws -> Answer {
        guard let token = caller.form["token"] else { throw TokenError.missing("token") }
        // Every fault is thrown: a revocation that may not have happened is never answered with 200.
        try await revoker.revoke(token, by: caller.client, realm: exchange.realm, now: clock())
        return Answer(.ok)
    }
}
