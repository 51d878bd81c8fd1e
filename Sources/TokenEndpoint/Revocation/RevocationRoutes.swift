import Grants
import HTTPTypes

/// `POST /connect/revoke` (RFC 7009): an unknown or foreign token is answered 200 without effect (§2.2).
struct RevocationRoutes: Sendable {
    let clients: ClientAuthenticator
    let revoker: TokenRevoker
    let clock: @Sendable () -> Double

    var routes: [Route] {
        [Route("/connect/revoke", [.post: { try await revoke($0) }]).cors(.clients).logged(as: "revocation")]
    }

    private func revoke(_ exchange: Exchange) async throws -> Answer {
        let (form, client) = try await clients.authenticate(exchange)
        guard let token = form["token"] else { throw TokenError.missing("token") }
        // Every fault is thrown: a revocation that may not have happened is never answered with 200.
        try await revoker.revoke(token, by: client, realm: exchange.realm, now: clock())
        return Answer(.ok)
    }
}
