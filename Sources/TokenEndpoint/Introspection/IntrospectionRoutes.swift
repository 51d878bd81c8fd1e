import Grants
import HTTPTypes
import Persistence

/// `POST /connect/introspect` (RFC 7662): confidential clients only; without `ept:introspection` only a client's own
/// tokens. As a JWT where the client asks for it (RFC 9701).
struct IntrospectionRoutes: Sendable {
    let clients: ClientAuthenticator
    let verifier: AccessTokenVerifier
    let refreshTokens: RefreshTokenVerifier
    let signingKeys: SigningKeys
    let databaseClock: DatabaseClock
    let clock: @Sendable () -> Double

    var routes: [Route] {
        [
            Route("/connect/introspect", [.post: .resourceServer(clients) { try await introspect($0, $1) }]).logged(
                as: "introspection")
        ]
    }

    private static let inactive = Array(#"{"active":false}"#.utf8)
    private static let signedType = "application/token-introspection+jwt"

    private func introspect(_ exchange: Exchange, _ caller: CallingClient) async throws -> Answer {
        let client = caller.client
        guard let token = caller.form["token"] else { throw TokenError.missing("token") }
        let wantsJWT = Self.wantsJWT(exchange.request.headers[values: .accept])
        if wantsJWT { try databaseClock.require() }
        let answer = try await answer(token, exchange.realm, client)?.json(for: exchange.realm) ?? Self.inactive
        guard wantsJWT else { return Answer(json: answer) }
        var signed = Answer(.ok, headers: [.contentType: Self.signedType])
        signed.body = try await signingKeys.introspection(answer, for: client, realm: exchange.realm, now: clock())
        return signed
    }

    /// Only a client that names the type gets a JWT, and only one that does not like JSON as much (RFC 9701 §4).
    static func wantsJWT(_ accept: [String]) -> Bool {
        guard !accept.isEmpty else { return false }
        let ranges = MediaRanges(accept)
        return ranges.weight(of: signedType, isNamed: true) > ranges.weight(of: "application/json")
    }

    /// - Returns: `nil` for a token that is not active, or not the client's to see.
    private func answer(
        _ text: String, _ realm: Realm, _ client: Client
    ) async throws(StoreError) -> IntrospectionAnswer? {
        switch try await verifier.identify(text, as: .mention, realm: realm, now: clock()) {
        case .user(let verified):
            return Self.visible(verified.token.audience, of: verified.session.client, to: client)
                .map { IntrospectionAnswer(verified, audience: $0) }
        case .service(let verified):
            return Self.visible(verified.token.audience, of: verified.account.client, to: client)
                .map { IntrospectionAnswer(verified, audience: $0) }
        case .address(let verified):
            return Self.visible(verified.token.audience, of: verified.client.key, to: client)
                .map { IntrospectionAnswer(verified, audience: $0) }
        case nil: break
        }
        // An API that asks about what it was sent must not take a refresh token for an access token (RFC 7662 §4).
        guard let (token, session) = try await refreshTokens.verify(text, realm: realm),
            session.client == client.key
                || client.permissions.contains("ept:introspection") && client.resources.isEmpty
        else { return nil }
        return IntrospectionAnswer(token, session, audience: session.resources)
    }

    /// What a client may see of a token's audience; `nil`: nothing, not even that the token is active.
    /// - Parameter owner: the client that the token was made for, which sees it for every audience.
    static func visible(_ audience: [String], of owner: UUIDValue, to client: Client) -> [String]? {
        if client.permissions.contains("ept:introspection") {
            guard !client.resources.isEmpty else { return audience }
            let served = audience.filter { one in
                client.resources.contains { ResourceIndicator.areEqual($0, one) }
            }
            if !served.isEmpty { return served }
        }
        return owner == client.key ? audience : nil
    }
}
