import Encoding
import Grants
import HTTPTypes
import Persistence

/// `POST /connect/introspect` (RFC 7662): confidential clients only; without `ept:introspection` only a client's own
/// tokens.
struct IntrospectionRoutes: Sendable {
    let clients: ClientAuthenticator
    let verifier: AccessTokenVerifier
    let refreshTokens: RefreshTokenVerifier
    let clock: @Sendable () -> Double

    var routes: [Route] {
        [Route("/connect/introspect", [.post: { try await introspect($0) }]).logged(as: "introspection")]
    }

    private static let inactive = Array(#"{"active":false}"#.utf8)

    private func introspect(_ exchange: Exchange) async throws -> Answer {
        let (form, client) = try await clients.authenticate(exchange)
        guard client.isConfidential else {
            throw TokenError(.invalidClient, "Client authentication failed.", reason: "public client")
        }
        guard let token = form["token"] else { throw TokenError.missing("token") }
        return Answer(json: try await describe(token, exchange.realm, client) ?? Self.inactive)
    }

    private func describe(_ text: String, _ realm: Realm, _ client: Client) async throws -> [UInt8]? {
        let seesAll = client.permissions.contains("ept:introspection")
        switch try await verifier.identify(text, realm: realm, now: clock()) {
        case .user(let verified):
            guard seesAll || verified.session.client == client.key else { return nil }
            return Self.active(
                realm, verified.session, session: verified.token.owner, scope: verified.token.scope,
                audience: verified.token.audience, issuedAt: verified.token.issuedAt,
                expiresAt: verified.token.expiresAt,
                tokenType: "Bearer")
        case .service(let verified):
            guard seesAll || verified.account.client == client.key else { return nil }
            return Self.active(realm, verified)
        case .address(let verified):
            guard seesAll || verified.client.key == client.key else { return nil }
            return Self.active(realm, verified)
        case nil: break
        }
        if let (token, session) = try await refreshTokens.verify(text, realm: realm) {
            guard seesAll || session.client == client.key else { return nil }
            return Self.active(
                realm, session, session: token.session, scope: session.scope, audience: session.resources,
                issuedAt: nil,
                expiresAt: Int(session.refreshExpiresAt ?? session.expiresAt), tokenType: nil)
        }
        return nil
    }

    /// RFC 7662 §2.2.
    private static func active(
        _ realm: Realm, _ live: LiveSession, session: UUIDValue, scope: [String], audience: [String], issuedAt: Int?,
        expiresAt: Int, tokenType: String?
    ) -> [UInt8] {
        var object = JSONWriter()
        object.member("active", true)
        object.member("scope", scope.joined(separator: " "))
        object.member("client_id", live.clientID)
        object.member("sub", live.user.description)
        object.audience(audience)
        object.member("iss", realm.issuer)
        object.member("exp", expiresAt)
        if let issuedAt { object.member("iat", issuedAt) }
        object.member("token_type", tokenType)
        object.member("auth_time", Int(live.authTime))
        object.member("amr", live.amr)
        object.member("sid", session.description)
        object.member("realm", realm.slug)
        object.testIdentity(live.user)
        return object.finish()
    }

    /// The answer for the token of a proven address, which belongs to no account and to no session.
    private static func active(_ realm: Realm, _ verified: VerifiedAddressToken) -> [UInt8] {
        var object = JSONWriter()
        object.member("active", true)
        object.member("scope", verified.token.scope.joined(separator: " "))
        object.member("client_id", verified.client.clientID)
        object.member("sub", verified.address.subject.description)
        object.audience(verified.token.audience)
        object.member("iss", realm.issuer)
        object.member("exp", verified.token.expiresAt)
        object.member("iat", verified.token.issuedAt)
        object.member("token_type", "Bearer")
        object.member("auth_time", verified.authTime)
        object.member("amr", verified.amr)
        object.member("realm", realm.slug)
        return object.finish()
    }

    /// A service account's token: without a sign-in there is no `auth_time`, `amr` or `sid`.
    private static func active(_ realm: Realm, _ verified: VerifiedServiceToken) -> [UInt8] {
        var object = JSONWriter()
        object.member("active", true)
        object.member("scope", verified.token.scope.joined(separator: " "))
        object.member("client_id", verified.account.clientID)
        object.member("sub", verified.token.owner.description)
        object.audience(verified.token.audience)
        object.member("iss", realm.issuer)
        object.member("exp", verified.token.expiresAt)
        object.member("iat", verified.token.issuedAt)
        object.member("token_type", "Bearer")
        object.member("realm", realm.slug)
        return object.finish()
    }
}
