import Encoding
import Grants
import HTTPTypes
import Persistence

/// A user's own sessions: listed and ended with any live token of the user's apps.
///
/// No step-up: ending a session only removes access. Works with native grants off, because sessions outlive them.
struct SessionRoutes: Sendable {
    let sessions: OwnSessions
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route(
                "/connect/sessions",
                [
                    .get: .account(bearer) { try await list($0, $1) },
                    .delete: .account(bearer) { try await endAll($0, $1) },
                ]),
            Route(prefix: "/connect/sessions/", [.delete: .account(bearer) { try await end($0, $1) }]),
        ].map { $0.cors(.clients).logged(as: "sessions") }
    }

    private func list(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let listed = try await sessions.list(realm: exchange.realm, verified: caller.verified)
        let items = listed.map { item in
            var object = JSONWriter(reserving: 256)
            object.member("Id", item.id.description)
            object.nullable("ClientId", item.clientID)
            object.nullable(
                "ClientName", item.clientID.map { exchange.realm.clients[$0]?.displayName ?? $0 })
            object.member("Browser", item.clientID == nil)
            object.nullable("UserAgent", item.userAgent)
            object.member("CreatedAt", Timestamp.text(item.createdAt))
            object.member("LastUsedAt", Timestamp.text(item.lastUsedAt))
            object.member("DPoP", item.isBound)
            object.member("Acr", item.acr ?? AuthenticationContext(amr: item.amr).rawValue)
            object.member("Current", item.id == caller.verified.token.owner)
            return object.finish()
        }
        return Answer(json: Array("[".utf8) + items.joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func end(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let id = UUIDValue(exchange.pathParameter),
            try await sessions.end(id, realm: exchange.realm, verified: caller.verified, source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }

    private func endAll(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let endsCurrent = try Self.endsCurrent(exchange)
        let done = try await sessions.endAll(
            keepsCurrent: !endsCurrent, realm: exchange.realm, verified: caller.verified, source: exchange.source)
        // The session ended between the two statements.
        return done ? Answer(.noContent) : .bearerChallenge(invalidToken: true)
    }

    /// `current=true`: the calling session ends too. Any other value is refused, so that no misspelling ends the wrong
    /// sessions.
    private static func endsCurrent(_ exchange: Exchange) throws(Refusal) -> Bool {
        let refusal = Refusal(.error(.badRequest, "current is invalid."))
        guard let query = try? FormParameters(parsing: exchange.request.query.utf8) else { throw refusal }
        switch query["current"] {
        case nil, "false": return false
        case "true": return true
        default: throw refusal
        }
    }
}
