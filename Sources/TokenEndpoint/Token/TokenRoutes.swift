import Grants
import HTTPTypes
import Logging

/// `POST /connect/token`.
struct TokenRoutes: Sendable {
    let service: TokenService
    let metrics: Metrics

    var routes: [Route] {
        [
            Route("/connect/token", [.post: .grant { try await token($0) }])
                .uniform(.refusals).cors(.clients).logged(as: "token")
        ]
    }

    private func token(_ exchange: Exchange) async throws -> Answer {
        let credentials = try exchange.presentedCredentials()
        let form = try exchange.form()
        // An unknown value is the caller's text: it must not reach a log or a metric.
        let grantType = form["grant_type"].flatMap { service.knows($0) ? $0 : nil } ?? "other"
        exchange.nameClient(form["client_id"] ?? credentials.clientID)
        let client = form["client_id"].flatMap { exchange.realm.clients[$0]?.clientID } ?? "other"
        do {
            let response = try await service.token(
                form, credentials: credentials, realm: exchange.realm, source: exchange.source,
                userAgent: exchange.userAgent, proof: exchange.presentedProof)
            metrics.countGrant(grantType, outcome: "ok", duration: exchange.age)
            if response.isRepeated { metrics.countRepetition() }
            if exchange.logs(.debug) {
                exchange.logger.debug(
                    "token",
                    metadata: [
                        "realm": "\(exchange.realm.slug)", "client": "\(client)", "grant": "\(grantType)",
                        "outcome": "ok",
                    ])
            }
            exchange.nextNonce?.note(response.nonce)
            return Answer(json: response.json)
        } catch {
            metrics.countGrant(grantType, outcome: error.code.rawValue, duration: exchange.age)
            throw LabelledError(
                error: error,
                labels: ["client": "\(client)", "grant": "\(grantType)", "source": "\(exchange.source)"])
        }
    }
}
