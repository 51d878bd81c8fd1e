import Encoding
import Grants
import HTTPTypes

/// Cotter's web wire (docs/wire.md): `/app` is the authorization endpoint, `get_identity` and `token` are the token
/// endpoint in other words. Without a client that uses it there is none of it.
struct CotterRoutes: Sendable {
    let authorization: AuthorizationRoutes
    let identities: CotterIdentities

    var routes: [Route] {
        [
            Route("/app", [.get: { try await authorize($0) }]).logged(as: "cotter"),
            Route("/api/v0/verify/get_identity", [.post: { try await identity($0) }]).logged(as: "cotter"),
            Route("/api/v0/token/jwks", [.get: { try await keys($0) }]).logged(as: "jwks"),
            Route(prefix: "/api/v0/token/", [.post: { try await refresh($0) }]).logged(as: "cotter"),
        ]
    }

    private func authorize(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.offersCotter else { return Answer(.notFound) }
        return try await authorization.authorize(exchange) { form, exchange in
            try AuthorizationRequest(cotter: form, realm: exchange.realm)
        }
    }

    private func identity(_ exchange: Exchange) async throws -> Answer {
        try await answering(exchange) {
            let keys = exchange.request.headers[values: .apiKeyID]
            guard keys.count <= 1 else { throw Self.malformed }
            _ = try exchange.realm.cotterClient(keys.first)
            let members = try await Self.members(of: exchange)
            guard let code = try members.string("authorization_code"),
                let verifier = try members.string("code_verifier"),
                let redirectURL = try members.string("redirect_url"), let number = members.integer("challenge_id")
            else { throw Self.malformed }
            let identity = try await identities.identity(
                CotterIdentities.Presented(
                    code: code, verifier: verifier, challengeID: number, redirectURL: redirectURL),
                key: keys.first, realm: exchange.realm, source: exchange.source, userAgent: exchange.userAgent)
            return Answer(json: identity.json)
        }
    }

    private func refresh(_ exchange: Exchange) async throws -> Answer {
        try await answering(exchange) {
            let key = exchange.pathParameter
            _ = try exchange.realm.cotterClient(key)
            let members = try await Self.members(of: exchange)
            guard try members.string("grant_type") == "refresh_token",
                let token = try members.string("refresh_token")
            else { throw Self.malformed }
            return Answer(
                json: try await identities.refreshed(
                    token, key: key, realm: exchange.realm, source: exchange.source, userAgent: exchange.userAgent))
        }
    }

    private func keys(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.offersCotter else { return Answer(.notFound) }
        return .cacheable(try await identities.keys(of: exchange.realm), seconds: 300, exchange)
    }

    private static func members(of exchange: Exchange) async throws(Refusal) -> JSONMembers {
        do {
            return try await exchange.json()
        } catch {
            // A form is as wrong a body as no JSON at all.
            throw Refusal(
                .cotter(error.answer.status == .contentTooLarge ? .contentTooLarge : .badRequest, "Invalid request"))
        }
    }

    private static let malformed = Refusal(.cotter(.badRequest, "Invalid request"))

    /// Errors as clients of this wire read them; limits and faults read as everywhere.
    private func answering(_ exchange: Exchange, _ body: () async throws -> Answer) async throws -> Answer {
        guard exchange.realm.offersCotter else { return Answer(.notFound) }
        do {
            return try await body()
        } catch let refusal as Refusal {
            guard refusal.answer.status == .badRequest else { throw refusal }
            throw Self.malformed
        } catch {
            let error = TokenError(error)
            switch error.code {
            case .invalidClient: throw Refusal(.cotter(.unauthorized, "Invalid API key"), because: error)
            case .invalidGrant: throw Refusal(.cotter(.badRequest, error.description), because: error)
            default: throw error
            }
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

// swift-format-ignore: NeverForceUnwrap
extension HTTPField.Name {
    fileprivate static let apiKeyID = HTTPField.Name("API_KEY_ID")!
}
