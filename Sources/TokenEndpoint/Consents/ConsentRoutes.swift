import Encoding
import Grants
import HTTPTypes
import Persistence

/// What a user allowed clients on their consent pages: listed and taken back.
///
/// No step-up: taking back a consent only removes access.
struct ConsentRoutes: Sendable {
    let consents: ConsentStore
    let bearer: BearerAuthentication

    var routes: [Route] {
        [
            Route("/connect/consents", [.get: .account(bearer) { try await list($0, $1) }]),
            Route(prefix: "/connect/consents/", [.delete: .account(bearer) { try await revoke($0, $1) }]),
        ].map { $0.cors(.clients).logged(as: "consents") }
    }

    private func list(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        let listed = try await consents.list(realm: exchange.realm.id, user: caller.user)
        let items = listed.map { item in
            var object = JSONWriter(reserving: 256)
            object.member("ClientId", item.clientID)
            object.member("ClientName", item.displayName)
            object.member("Scopes", item.scope)
            object.member("GivenAt", Timestamp.text(item.givenAt))
            return object.finish()
        }
        return Answer(json: Array("[".utf8) + items.joined(separator: Array(",".utf8)) + Array("]".utf8))
    }

    private func revoke(_ exchange: Exchange, _ caller: AccountCaller) async throws -> Answer {
        guard let client = exchange.realm.clients[exchange.pathParameter],
            try await consents.revoke(
                realm: exchange.realm.id, session: caller.verified.token.owner, client: client.key,
                source: exchange.source)
        else { return Answer(.notFound) }
        return Answer(.noContent)
    }
}
