import Encoding
import Grants
import HTTPTypes
import Logging

/// Discovery and keys of a realm (OpenID Connect Discovery §4, RFC 8414, RFC 7517).
struct DiscoveryRoutes: Sendable {
    let service: TokenService
    let signingKeys: SigningKeys
    let clock: @Sendable () -> Double
    private let documents = DocumentCache()

    init(service: TokenService, signingKeys: SigningKeys, clock: @escaping @Sendable () -> Double) {
        self.service = service
        self.signingKeys = signingKeys
        self.clock = clock
    }

    var routes: [Route] {
        [
            Route("/.well-known/openid-configuration", [.get: .anonymous { metadata($0) }]),
            Route("/.well-known/oauth-authorization-server", [.get: .anonymous { metadata($0) }]),
            Route("/.well-known/jwks", [.get: .anonymous { try await jwks($0) }]).logged(as: "jwks"),
            // Where some libraries look without discovery.
            Route("/.well-known/jwks.json", [.get: .anonymous { try await jwks($0) }]).logged(as: "jwks"),
        ].map { $0.cors(.all) }
    }

    private func metadata(_ exchange: Exchange) -> Answer {
        let now = clock()
        let document = documents.document(.metadata(second: Int(now)), exchange) {
            metadata(of: exchange.realm, now: now)
        }
        return .cacheable(document, seconds: 5, exchange)
    }

    private func metadata(of realm: Realm, now: Double) -> [UInt8] {
        // On an App's host the endpoints are the App's; the issuer is the realm's everywhere (docs/decisions/0013).
        let origin = realm.endpointOrigin
        let authMethods = ClientAuthenticator.methods
        var object = JSONWriter(reserving: 2048)
        object.member("issuer", realm.issuer)
        object.member("token_endpoint", origin + "/connect/token")
        object.member("jwks_uri", origin + "/.well-known/jwks")
        object.member("userinfo_endpoint", origin + "/connect/userinfo")
        object.member("introspection_endpoint", origin + "/connect/introspect")
        object.member("revocation_endpoint", origin + "/connect/revoke")
        object.member("grant_types_supported", service.grantTypes(for: realm))
        // Required, and it may not be empty where there is no authorization endpoint (RFC 8414 §2, §3.2).
        object.member("response_types_supported", [realm.hosted.isEnabled ? "code" : "none"])
        object.member("subject_types_supported", ["public"])
        let algorithms = SigningKeys.algorithms(of: realm, now: now)
        object.member("id_token_signing_alg_values_supported", algorithms)
        object.member("introspection_signing_alg_values_supported", algorithms)
        object.member("acr_values_supported", realm.reachableContexts)
        object.member("dpop_signing_alg_values_supported", ClientKey.Algorithm.allCases.map(\.rawValue))
        object.member("token_endpoint_auth_methods_supported", ["none"] + authMethods)
        object.member("introspection_endpoint_auth_methods_supported", authMethods)
        object.member("revocation_endpoint_auth_methods_supported", ["none"] + authMethods)
        for endpoint: StaticString in [
            "token_endpoint_auth_signing_alg_values_supported",
            "introspection_endpoint_auth_signing_alg_values_supported",
            "revocation_endpoint_auth_signing_alg_values_supported",
        ] {
            object.member(endpoint, ClientAuthenticator.algorithms)
        }
        object.member(
            "scopes_supported",
            realm.scopes.values.filter { $0.enabled && $0.inDiscovery && realm.canReach(scope: $0.name) }.map(\.name)
                .sorted())
        object.member(
            "claims_supported",
            [
                "iss", "sub", "aud", "exp", "iat", "auth_time", "amr", "acr", "sid", "realm", "at_hash", "email",
                "email_verified",
                "name", "given_name", "family_name",
            ] + (realm.scopes["phone"]?.enabled == true ? ["phone_number", "phone_number_verified"] : [])
                + (realm.hosted.isEnabled ? ["nonce"] : []))
        service.describe(in: &object, for: realm)
        return object.finish()
    }

    private func jwks(_ exchange: Exchange) async throws -> Answer {
        let now = clock()
        if let known = documents.known(.jwks(second: Int(now)), exchange) {
            return .cacheable(known, seconds: 300, exchange)
        }
        let set: [UInt8]
        do {
            set = try await signingKeys.jwks(for: exchange.realm, now: now)
        } catch {
            throw LabelledError(error: error, level: .error)
        }
        return .cacheable(documents.document(.jwks(second: Int(now)), exchange) { set }, seconds: 300, exchange)
    }
}
