import Encoding
import Grants
import HTTPTypes
import Persistence

/// Cotter's web wire (docs/wire.md): `/app` is the authorization endpoint, `get_identity` and `token` are the token
/// endpoint in other words. Answers 404 unless a client of the realm may use it.
struct CotterRoutes: Sendable {
    let authorization: AuthorizationRoutes
    let identities: CotterIdentities
    /// Told of a request without its key, which a proxy may have dropped: its name has underscores.
    let countMissingKey: @Sendable () -> Void

    var routes: [Route] {
        [
            Route("/app", [.get: .page { try await authorize($0) }]).logged(as: "cotter"),
            Route("/api/v0/verify/get_identity", [.post: .grant { try await identity($0) }]).logged(as: "cotter"),
            Route("/api/v0/token/jwks", [.get: .anonymous { try await keys($0) }]).logged(as: "jwks"),
            Route(prefix: "/api/v0/token/", [.post: .grant { try await refresh($0) }]).logged(as: "cotter"),
        ].map { $0.requiring(.cotter) }
    }

    private func authorize(_ exchange: Exchange) async throws -> Answer {
        return try await authorization.authorize(exchange, lists: Channel.cotterLists) { form, exchange in
            try AuthorizationRequest(cotter: form, realm: exchange.realm)
        }
    }

    private func identity(_ exchange: Exchange) async throws -> Answer {
        let keys = exchange.request.headers[values: .apiKeyID]
        if keys.isEmpty { countMissingKey() }
        guard keys.count <= 1 else { throw CotterRefusal.request }
        _ = try exchange.realm.cotterClient(keys.first)
        let members = try await Self.members(of: exchange)
        guard let code = members.text("authorization_code"),
            let verifier = members.text("code_verifier"),
            let redirectURL = members.text("redirect_url"), let number = members.integer("challenge_id")
        else { throw CotterRefusal.request }
        let identity = try await identities.identity(
            CotterIdentities.Presented(
                code: code, verifier: verifier, challengeID: number, redirectURL: redirectURL),
            key: keys.first, realm: exchange.realm, source: exchange.source, userAgent: exchange.userAgent)
        return Answer(json: identity.json)
    }

    private func refresh(_ exchange: Exchange) async throws -> Answer {
        let key = exchange.pathParameter
        _ = try exchange.realm.cotterClient(key)
        let members = try await Self.members(of: exchange)
        guard members.text("grant_type") == "refresh_token", let token = members.text("refresh_token")
        else { throw CotterRefusal.request }
        return Answer(
            json: try await identities.refreshed(
                token, key: key, realm: exchange.realm, source: exchange.source, userAgent: exchange.userAgent))
    }

    private func keys(_ exchange: Exchange) async throws -> Answer {
        return .cacheable(try await identities.keys(of: exchange.realm), seconds: 300, exchange)
    }

    private static func members(of exchange: Exchange) async throws -> JSONMembers {
        do {
            return try await exchange.json()
        } catch {
            guard error.answer.status == .contentTooLarge else { throw CotterRefusal.request }
            throw error
        }
    }
}

extension CotterRefusal: AnswerableError {
    package var answer: Answer {
        switch self {
        case .apiKey: .cotter(.unauthorized, "Invalid API key")
        case .request: .cotter(.badRequest, "Invalid request")
        case .code: .cotter(.badRequest, "Challenge Expired")
        case .refreshToken: .cotter(.badRequest, "The refresh token is invalid.")
        }
    }

    package var reason: String? {
        switch self {
        case .apiKey: "api key"
        case .request: nil
        case .code(let reason), .refreshToken(let reason): reason
        }
    }
}

extension Answer {
    /// `{"msg", "type"}`.
    fileprivate static func cotter(_ status: HTTPResponse.Status, _ text: String) -> Answer {
        var object = JSONWriter(reserving: 64)
        object.member("msg", text)
        object.member("type", "")
        return Answer(status, json: object.finish())
    }
}
