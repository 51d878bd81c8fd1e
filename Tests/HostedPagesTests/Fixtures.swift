import Foundation
import Grants
import Persistence

extension Realm {
    /// A realm with pages, as `postern.realm_config` answers.
    static func onPages(_ changes: [String: Any] = [:]) throws -> Realm {
        var record: [String: Any] = [
            "id": UUIDValue.random().description, "config_version": 1, "slug": "r", "display_name": "Acme & Sons",
            "public_origin": "https://a.example", "primary_domain": "a.example", "native_grants_enabled": true,
            "hosted": [
                "enabled": true, "methods": ["passkey", "email-code", "magic-link"], "default_locale": "en",
                "sso_idle": 2_592_000, "sign_in_lifetime": 1800, "code_lifetime": 60, "offer_passkey": true,
            ],
            "access_token_lifetime": 900, "refresh_token_lifetime": 1_209_600, "refresh_retry_window": 120,
            "session_lifetime": 31_536_000, "otp_lifetime": 600, "magic_link_lifetime": 900, "otp_attempts": 5,
            "resend_cooldown": 60, "ceremony_lifetime": 300, "registration_firstname": "Off",
            "registration_lastname": "Off", "clients": [[String: Any]](), "scopes": [[String: Any]](),
            "apps": [[String: Any]](), "rate_limits": [[String: Any]](), "signing_keys": [[String: Any]](),
            "hint_keys": [[String: Any]](), "test_code_keys": [[String: Any]](), "otp_digits": 6,
            "channels": [String](), "address_rules": [[String: Any]](),
            "dpop": ["nonce": "auto", "nonce_lifetime": 300],
        ]
        record.merge(changes) { $1 }
        return try Realm(
            json: String(decoding: try JSONSerialization.data(withJSONObject: record), as: UTF8.self))
    }
}
