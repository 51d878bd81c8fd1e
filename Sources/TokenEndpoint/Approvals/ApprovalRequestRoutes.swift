import Encoding
import Grants
import HTTPTypes

/// `POST /connect/bc-authorize` (CIBA Core 1.0 §7): one uniform answer at a fixed time for every hint.
struct ApprovalRequestRoutes: Sendable {
    let requests: ApprovalRequests
    let clients: ClientAuthenticator
    let proofs: Proofs

    var routes: [Route] {
        [
            Route("/connect/bc-authorize", [.post: .client(clients, proofs) { try await ask($0, $1) }])
                .uniform(.accepted).cors(.clients).logged(as: "bc-authorize")
        ]
    }

    private func ask(_ exchange: Exchange, _ caller: ProvingClient) async throws -> Answer {
        let client = caller.client
        try exchange.realm.requireAdmission(of: client)
        let asker = ApprovalRequests.Asker(
            client, realm: exchange.realm, source: exchange.source,
            forwarded: try exchange.presentedCredentials().forwardedSource(by: client))
        let asked = try await caller.acting(in: exchange) { proof in
            try await requests.ask(caller.form, by: asker, proof: proof)
        }
        var object = JSONWriter(reserving: 1280)
        object.member("auth_req_id", asked.authReqID)
        object.member("expires_in", asked.expiresIn)
        object.member("interval", ApprovalRequests.interval)
        object.member("match_number", asked.matchNumber)
        return Answer(json: object.finish())
    }
}
