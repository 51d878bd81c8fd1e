import Encoding
import Grants
import HTTPTypes

/// `POST /connect/bc-authorize` (CIBA Core 1.0 §7): one uniform answer at a fixed time for every hint.
struct BackchannelRoutes: Sendable {
    let requests: BackchannelRequests
    let clients: ClientAuthenticator
    let proofs: Proofs

    var routes: [Route] {
        [
            Route("/connect/bc-authorize", [.post: { try await ask($0) }])
                .uniform(.accepted).logged(as: "bc-authorize")
        ]
    }

    private func ask(_ exchange: Exchange) async throws -> Answer {
        let (form, authenticated) = try clients.verify(exchange)
        let client = authenticated.client
        try exchange.realm.requireAdmission(of: client)
        let asker = BackchannelRequests.Asker(
            client, realm: exchange.realm, source: exchange.source,
            forwarded: try exchange.presentedCredentials().forwardedSource(by: client))
        let proof = try exchange.proof(by: proofs)
        let asked = try await clients.spending(authenticated, exchange) {
            try await proofs.using(in: exchange.realm) {
                try await requests.ask(form, by: asker, proof: proof)
            }
        }
        var object = JSONWriter(reserving: 1280)
        object.member("auth_req_id", asked.authReqID)
        object.member("expires_in", asked.expiresIn)
        object.member("interval", BackchannelRequests.interval)
        object.member("match_number", asked.matchNumber)
        return Answer(json: object.finish())
    }
}
