import Grants
import HTTPTypes
import Logging

/// `POST /connect/token` (RFC 6749 §3.2).
struct TokenRoutes: Sendable {
    let service: TokenService
    let deadline: UniformDeadline
    let metrics: Metrics

    var routes: [Route] { [Route("/connect/token", [.post: { await token($0) }])] }

    private func token(_ exchange: Exchange) async -> Answer {
        do {
            let credentials = try exchange.clientCredentials()
            let form = try exchange.form()
            return await token(exchange, form, credentials)
        } catch {
            return error.answer
        }
    }

    private func token(_ exchange: Exchange, _ form: FormParameters, _ credentials: ClientCredentials) async -> Answer {
        // An unknown value is the caller's text: it must not reach a log or a metric.
        let grantType = form["grant_type"].flatMap { service.knows($0) ? $0 : nil } ?? "other"
        let client = form["client_id"].flatMap { exchange.realm.clients[$0]?.clientID } ?? "other"
        do {
            let response = try await service.token(
                form, credentials: credentials, realm: exchange.realm, source: exchange.source,
                userAgent: exchange.userAgent)
            metrics.countGrant(grantType, outcome: "ok")
            if exchange.logs(.debug) {
                exchange.logger.debug(
                    "token",
                    metadata: [
                        "realm": "\(exchange.realm.slug)", "client": "\(client)", "grant": "\(grantType)",
                        "outcome": "ok",
                    ])
            }
            return Answer(json: response.json)
        } catch {
            metrics.countGrant(grantType, outcome: error.code.rawValue)
            exchange.logger.log(
                level: Self.level(error.code), "token",
                metadata: [
                    "realm": "\(exchange.realm.slug)", "client": "\(client)", "grant": "\(grantType)",
                    "outcome": "\(error.code.rawValue)",
                    "reason": "\(error.reason)", "source": "\(exchange.source)",
                ])
            if Self.isAboutAccount(error.code) { await deadline.hold(exchange) }
            return .oauth(error, basicUsed: exchange.usedAuthorization)
        }
    }

    /// Whether an answer with this code is sent at the fixed deadline.
    private static func isAboutAccount(_ code: TokenError.Code) -> Bool {
        [.invalidGrant, .authorizationPending, .slowDown, .accessDenied].contains(code)
    }

    /// The log level. A polling app gets `authorization_pending` every few seconds, so that is for debugging only.
    private static func level(_ code: TokenError.Code) -> Logger.Level {
        switch code {
        case .temporarilyUnavailable: .warning
        case .authorizationPending: .debug
        default: .info
        }
    }
}
