import Grants
import HTTPTypes
import Logging
import Persistence

/// A user's own sessions (contract §4.3): seen and ended with any live token of the user.
///
/// No step-up: ending a session takes trust away and gives none. Native grants need not be on, since sessions outlive them.
struct SessionRoutes: Sendable {
    let sessions: OwnSessionStore
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/connect/sessions", [.get: { await answer($0, list) }]),
            Route(prefix: "/connect/sessions/", [.delete: { await answer($0, end) }]),
        ]
    }

    private func answer(
        _ exchange: Exchange, _ handler: (Exchange, VerifiedAccessToken) async throws -> Answer
    ) async -> Answer {
        do {
            return try await handler(exchange, try await bearer.authenticate(exchange))
        } catch let refusal as Refusal {
            return refusal.answer
        } catch {
            exchange.logger.warning("sessions", metadata: ["realm": "\(exchange.realm.slug)", "error": "\(error)"])
            return .unavailable
        }
    }

    private func list(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        let listed = try await sessions.list(realm: exchange.realm.id, user: verified.session.user)
        let items = listed.map { item in
            var object = JSONWriter(reserving: 256)
            object.member("Id", item.id.description)
            object.member("ClientId", item.clientID)
            object.member("CreatedAt", Timestamp.text(item.createdAt))
            object.member("LastUsedAt", Timestamp.text(item.lastUsedAt))
            object.member("Current", item.id == verified.token.session)
            return object.finish()
        }
        return Answer(json: Array("[".utf8) + items.joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func end(_ exchange: Exchange, _ verified: VerifiedAccessToken) async throws -> Answer {
        guard let id = UUIDValue(exchange.pathParameter),
            try await sessions.end(
                realm: exchange.realm.id, user: verified.session.user, session: id, by: verified.token.session,
                source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }
}
