import Encoding
import Grants
import HTTPTypes
import Persistence

/// Cotter's events (docs/wire.md), for backends. Answers 404 while the realm has approvals off.
struct CotterEventRoutes: Sendable {
    let events: CotterEvents
    let keys: APIKeys

    var routes: [Route] {
        [
            Route("/api/v0/event/create_pending", [.post: .apiKeys(keys) { try await create($0, $1) }]),
            Route(prefix: "/api/v0/event/get/", [.get: .apiKeys(keys) { try await get($0, $1) }]),
            Route(prefix: "/api/v0/event/new/", [.get: .apiKeys(keys) { try await newest($0, $1) }]),
        ].map { $0.requiring(.cotterEvents).logged(as: "cotter") }
    }

    private func create(_ exchange: Exchange, _ caller: APIKeysCaller) async throws -> Answer {
        let members: JSONMembers
        do {
            members = try await exchange.json()
        } catch {
            guard error.answer.status == .contentTooLarge else { throw CotterRefusal.request }
            throw error
        }
        guard let hint = members.text("client_user_id"), let issuer = members.text("issuer"),
            let event = members.text("event"), let method = members.text("method"),
            members.integer("timestamp") != nil,
            let presented = CotterEvents.Presented(
                hint: hint, issuer: issuer, event: event, ip: members.text("ip"), method: method, client: caller.client)
        else { throw CotterRefusal.request }
        return Answer(
            json: try await events.create(
                presented, by: .init(caller.client, realm: exchange.realm, source: exchange.source, forwarded: nil)))
    }

    private func get(_ exchange: Exchange, _ caller: APIKeysCaller) async throws -> Answer {
        let query = try? FormParameters(parsing: exchange.request.query.utf8)
        guard let number = Int32(exchange.pathParameter), number > 0, String(number) == exchange.pathParameter,
            let event = try await events.event(
                number, of: caller.client, realm: exchange.realm, redeems: query?["oauth_token"] == "true",
                source: exchange.source, userAgent: exchange.userAgent)
        else { return Answer(.notFound) }
        return Answer(json: event)
    }

    private func newest(_ exchange: Exchange, _ caller: APIKeysCaller) async throws -> Answer {
        let hint = try? FormParameters(parsing: "hint=\(exchange.pathParameter.replacing("+", with: "%2B"))".utf8)
        guard let hint = hint?["hint"] else { return Answer(json: Array("null".utf8)) }
        return Answer(
            json: try await events.newest(for: hint, of: caller.client, realm: exchange.realm) ?? Array("null".utf8))
    }
}
