import Grants

/// One realm with two clients, the same in every process, so that corpora stay meaningful.
enum GrantsFuzzScene {
    static let redirectURIs = [
        "https://app.example/callback", "com.example.app:/callback", "http://127.0.0.1/callback", "http://[::1]/",
        "http://localhost:8080",
    ]

    static let realm = try? Realm(
        json: """
            {"id": "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a", "config_version": 1, "slug": "fuzz", "display_name": "F",
             "public_origin": "https://fuzz.example", "native_grants_enabled": true,
             "hosted": {"enabled": false, "methods": [], "default_locale": "en", "sso_idle": 0,
               "sign_in_lifetime": 1800, "code_lifetime": 60, "offer_passkey": false},
             "access_token_lifetime": 900, "refresh_token_lifetime": 1209600, "refresh_retry_window": 120,
             "session_lifetime": 31536000, "otp_lifetime": 600, "magic_link_lifetime": 900, "otp_digits": 6,
             "otp_attempts": 5, "resend_cooldown": 60, "ceremony_lifetime": 300, "registration_firstname": "Off",
             "registration_lastname": "Off", "channels": [], "address_rules": [],
             "dpop": {"nonce": "auto", "nonce_lifetime": 300},
             "clients": [\(client("app", "public")), \(client("api", "confidential"))],
             "scopes": [\(["openid", "offline_access", "mail", "read:all"].map(scope).joined(separator: ","))],
             "apps": [], "rate_limits": [], "signing_keys": [], "hint_keys": [], "test_code_keys": []}
            """)

    private static func client(_ id: String, _ type: String) -> String {
        let uris = redirectURIs.map { "\"\($0)\"" }.joined(separator: ",")
        return """
            {"key": "5b5b5b5b-5b5b-5b5b-5b5b-5b5b5b5b5b5b", "client_id": "\(id)", "display_name": "C", "type": "\(type)",
             "enabled": true, "settings": {"access_token_type": "reference", "require_dpop": false,
               "signing_alg": "realm", "consent": "implicit", "require_pkce": true, "require_par": false},
             "permissions": ["scp:mail", "scp:read:all", "gt:refresh_token"], "resources": [], "origins": [],
             "ios_apps": [], "android_apps": [],
             "redirect_uris": [\(uris)], "logout_uris": []}
            """
    }

    private static func scope(_ name: String) -> String {
        #"{"name": "\#(name)", "resources": ["https://\#(name.count).example"], "in_discovery": true, "enabled": true}"#
    }
}
