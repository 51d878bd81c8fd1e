import Grants
import Persistence
import Synchronization

/// A realm as `postern.realm_config` answers it, in the parts that tests change.
struct RealmDocument: Sendable {
    var id = UUIDValue.random()
    var version = 1
    var slug = "r"
    var issuer = "https://r.example"
    var nativeGrantsEnabled = true
    var clients = [Self.client("app"), Self.client("web", permissions: ["gt:refresh_token"])]
    /// JSON objects.
    var signingKeys: [String] = []
    var apps: [String] = []
    var rateLimits: [String] = []

    static func client(
        _ clientID: String, key: UUIDValue = .random(),
        permissions: [String] = ["gt:urn:cocoar:otp", "gt:refresh_token", "scp:profile"]
    ) -> String {
        """
        {"key": "\(key)", "client_id": "\(clientID)", "display_name": "", "type": "public", "enabled": true,
         "settings": {"access_token_type": "reference", "require_dpop": false, "signing_alg": "realm",
           "consent": "systematic", "require_pkce": true, "require_par": false},
         "permissions": [\(list(permissions))], "origins": [], "resources": [], "ios_apps": [], "android_apps": [],
         "redirect_uris": [], "logout_uris": []}
        """
    }

    static func app(_ slug: String, host: String, nativeGrantsEnabled: Bool = true, clients: [UUIDValue] = []) -> String
    {
        """
        {"slug": "\(slug)", "display_name": "\(slug)", "subdomain": "\(host)", "registration": "Off",
         "native_grants_enabled": \(nativeGrantsEnabled), "hosted_enabled": false, "hosted_methods": ["email-code"],
         "default_locale": "en", "offer_passkey": false, "registration_firstname": "Off",
         "registration_lastname": "Off", "clients": [\(list(clients.map(\.description)))]}
        """
    }

    static func rateLimit(_ policy: String, _ dimension: String, permits: Int) -> String {
        """
        {"policy": "\(policy)", "dimension": "\(dimension)", "permits": \(permits), "per": 60, "burst": \(permits),
         "mode": "enforce"}
        """
    }

    /// - Parameter privateHalf: nothing opens it; the key can be published all the same.
    static func signingKey(
        _ kid: String, _ algorithm: String = "ES256", from: Double = 0, until: Double? = nil, privateHalf: String = "00"
    ) -> String {
        """
        {"kid": "\(kid)", "alg": "\(algorithm)", "public_jwk": {"kid": "\(kid)", "kty": "EC"},
         "sealed_private": "\(privateHalf)", "for_realm": true, "activates_at": \(from),
         "retires_at": \(until.map { "\($0)" } ?? "null")}
        """
    }

    func realm() throws -> Realm {
        try Realm(
            json: """
                {"id": "\(id)", "config_version": \(version), "slug": "\(slug)", "display_name": "R",
                 "public_origin": "\(issuer)", "primary_domain": "r.example",
                 "native_grants_enabled": \(nativeGrantsEnabled),
                 "hosted": {"enabled": false, "methods": ["email-code"], "default_locale": "en", "sso_idle": 2592000,
                   "sign_in_lifetime": 1800, "code_lifetime": 60, "offer_passkey": false},
                 "access_token_lifetime": 900, "otp_digits": 6, "channels": [], "address_rules": [],
                 "dpop": {"nonce": "auto", "nonce_lifetime": 300},
                 "refresh_token_lifetime": 1209600, "refresh_retry_window": 120, "session_lifetime": 31536000,
                 "otp_lifetime": 600, "magic_link_lifetime": 900, "otp_attempts": 5, "resend_cooldown": 60,
                 "ceremony_lifetime": 300, "registration_firstname": "Off", "registration_lastname": "Off",
                 "clients": [\(clients.joined(separator: ","))],
                 "scopes": [
                   {"name": "openid", "resources": [], "in_discovery": true, "enabled": true},
                   {"name": "profile", "resources": [], "in_discovery": true, "enabled": true},
                   {"name": "hidden", "resources": [], "in_discovery": false, "enabled": true},
                   {"name": "off", "resources": [], "in_discovery": true, "enabled": false}],
                 "apps": [\(apps.joined(separator: ","))], "rate_limits": [\(rateLimits.joined(separator: ","))],
                 "signing_keys": [\(signingKeys.joined(separator: ","))], "hint_keys": [], "test_code_keys": []}
                """)
    }

    private static func list(_ values: [String]) -> String { values.map { "\"\($0)\"" }.joined(separator: ",") }
}

/// A configuration that tests write.
final class StaticConfiguration: ConfigurationSource {
    private struct State {
        var hosts: [String: UUIDValue] = [:]
        var realms: [UUIDValue: RealmDocument] = [:]
        var fails = false
    }

    private let state = Mutex(State())

    init(_ realms: [String: RealmDocument]) {
        for (host, realm) in realms { put(realm, host: host) }
    }

    func put(_ realm: RealmDocument, host: String) {
        state.withLock { state in
            state.hosts[host] = realm.id
            state.realms[realm.id] = realm
        }
    }

    func fail() { state.withLock { $0.fails = true } }

    func directory() async throws(StoreError) -> [String: ClaimedHost] {
        try check()
        return state.withLock { $0.hosts.mapValues { ClaimedHost(realm: $0) } }
    }

    func snapshot(of id: UUIDValue) async throws(StoreError) -> Realm? {
        try check()
        do {
            return try state.withLock { $0.realms[id] }?.realm()
        } catch {
            throw .malformedResult
        }
    }

    func versions() async throws(StoreError) -> [UUIDValue: Int64] {
        state.withLock { $0.realms.mapValues { Int64($0.version) } }
    }

    private func check() throws(StoreError) {
        if state.withLock({ $0.fails }) { throw .unavailable(.connectFailed) }
    }
}
