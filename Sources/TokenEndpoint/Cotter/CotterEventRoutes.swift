import Encoding
import Grants
import HTTPTypes
import Persistence

/// Cotter's events (docs/wire.md), for backends. Without approvals there is none of it.
struct CotterEventRoutes: Sendable {
    let events: CotterEvents
    let databaseClock: DatabaseClock
    /// Told of a request without its key, which a proxy may have dropped: its name has underscores.
    let countMissingKey: @Sendable () -> Void

    var routes: [Route] {
        [
            Route("/api/v0/event/create_pending", [.post: { try await create($0) }]),
            Route(prefix: "/api/v0/event/get/", [.get: { try await get($0) }]),
            Route(prefix: "/api/v0/event/new/", [.get: { try await newest($0) }]),
        ].map { $0.logged(as: "cotter") }
    }

    private func create(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.approvals.isEnabled else { return Answer(.notFound) }
        let client = try await client(of: exchange)
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
                hint: hint, issuer: issuer, event: event, ip: members.text("ip"), method: method, client: client)
        else { throw CotterRefusal.request }
        return Answer(
            json: try await events.create(
                presented, by: .init(client, realm: exchange.realm, source: exchange.source, forwarded: nil)))
    }

    private func get(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.approvals.isEnabled else { return Answer(.notFound) }
        let client = try await client(of: exchange)
        let query = try? FormParameters(parsing: exchange.request.query.utf8)
        guard let number = Int32(exchange.pathParameter), number > 0, String(number) == exchange.pathParameter,
            let event = try await events.event(
                number, of: client, realm: exchange.realm, redeems: query?["oauth_token"] == "true",
                source: exchange.source, userAgent: exchange.userAgent)
        else { return Answer(.notFound) }
        return Answer(json: event)
    }

    private func newest(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.approvals.isEnabled else { return Answer(.notFound) }
        let client = try await client(of: exchange)
        let hint = try? FormParameters(parsing: "hint=\(exchange.pathParameter.replacing("+", with: "%2B"))".utf8)
        guard let hint = hint?["hint"] else { return Answer(json: Array("null".utf8)) }
        return Answer(
            json: try await events.newest(for: hint, of: client, realm: exchange.realm) ?? Array("null".utf8))
    }

    private func client(of exchange: Exchange) async throws -> Client {
        let keys = exchange.request.headers[values: .apiKeyID]
        let secrets = exchange.request.headers[values: .apiSecretKey]
        if keys.isEmpty { countMissingKey() }
        guard keys.count == 1, secrets.count == 1,
            let form = FormParameters([("client_id", keys[0]), ("client_secret", secrets[0])]),
            let client = try? exchange.realm.authenticate(form, PresentedCredentials(header: .none)),
            client.hasCotterEvents, exchange.realm.admits(client)
        else { throw CotterRefusal.apiKey }
        try databaseClock.require()
        return client
    }
}

// swift-format-ignore: NeverForceUnwrap
extension HTTPField.Name {
    fileprivate static let apiSecretKey = HTTPField.Name("API_SECRET_KEY")!
}
