import Grants
import HTTPTypes
import Persistence

/// The headers `API_KEY_ID` and `API_SECRET_KEY`, by which backends authenticate on Cotter's wire.
struct APIKeys: Sendable {
    let databaseClock: DatabaseClock
    /// Told of a request without its key, which a proxy may have dropped: its name has underscores.
    let countMissingKey: @Sendable () -> Void

    /// - Throws: ``CotterRefusal``; what the clock threw.
    func caller(_ exchange: Exchange) throws -> APIKeysCaller {
        let keys = exchange.request.headers[values: .apiKeyID]
        let secrets = exchange.request.headers[values: .apiSecretKey]
        if keys.isEmpty { countMissingKey() }
        guard keys.count == 1, secrets.count == 1,
            let form = FormParameters([("client_id", keys[0]), ("client_secret", secrets[0])]),
            let client = try? exchange.realm.authenticate(form, PresentedCredentials(header: .none)),
            client.hasCotterEvents, exchange.realm.admits(client)
        else { throw CotterRefusal.apiKey }
        try databaseClock.require()
        return APIKeysCaller(client: client)
    }
}

/// A backend on Cotter's wire.
struct APIKeysCaller: Sendable {
    let client: Client

    fileprivate init(client: Client) { self.client = client }
}

// swift-format-ignore: NeverForceUnwrap
extension HTTPField.Name {
    static let apiKeyID = HTTPField.Name("API_KEY_ID")!
    fileprivate static let apiSecretKey = HTTPField.Name("API_SECRET_KEY")!
}
