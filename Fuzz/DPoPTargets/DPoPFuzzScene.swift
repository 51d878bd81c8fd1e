import Crypto
import Encoding
import Grants
import Persistence

/// One realm, one request and one key per curve, the same in every process, so that corpora stay meaningful.
public enum DPoPFuzzScene {
    /// Seconds since the epoch.
    public static let now = 1_800_000_000.0
    /// The URL that proofs are for.
    public static let url = "https://fuzz.example/connect/token"

    private static let keyring = try? Keyring(parsing: "WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlo=")
    private static let realm = try? Realm(
        json: """
            {"id": "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a", "config_version": 1, "slug": "fuzz", "display_name": "F",
             "public_origin": "https://fuzz.example", "native_grants_enabled": true,
             "hosted": {"enabled": false, "methods": [], "default_locale": "en", "sso_idle": 0,
               "sign_in_lifetime": 1800, "code_lifetime": 60, "offer_passkey": false},
             "access_token_lifetime": 900, "refresh_token_lifetime": 1209600, "refresh_retry_window": 120,
             "session_lifetime": 31536000, "otp_lifetime": 600, "magic_link_lifetime": 900, "otp_digits": 6,
             "otp_attempts": 5, "resend_cooldown": 60, "ceremony_lifetime": 300, "registration_firstname": "Off",
             "registration_lastname": "Off", "channels": [], "address_rules": [],
             "dpop": {"nonce": "auto", "nonce_lifetime": 300}, "clients": [], "scopes": [], "apps": [],
             "rate_limits": [], "signing_keys": [], "hint_keys": [], "test_code_keys": []}
            """)

    // These keys protect nothing.
    private static let p256 = try? P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 0x11, count: 32))
    private static let ed25519 = try? Curve25519.Signing.PrivateKey(
        rawRepresentation: [UInt8](repeating: 0x11, count: 32))

    private static let verifier = keyring.map { DPoPVerifier(nonces: DPoPNonces(keyring: $0)) { now } }

    /// A nonce of the realm.
    public static func nonce() -> String {
        guard let verifier, let realm else { return "" }
        return verifier.nonces.make(realm: realm.id, at: now)
    }

    /// What a field with this value proves; nil for nothing.
    static func verify(_ field: String) -> DPoPProof? {
        guard let realm, let verifier else { return nil }
        let url = RequestedURL(realm: realm, host: "fuzz.example", path: "/connect/token")
        return try? verifier.verify([field], method: "POST", url: url, accessToken: nil, realm: realm)
    }

    /// Header and payload with the signature of the Ed25519 key.
    static func signed(_ input: String) throws -> String {
        guard let ed25519 else { return input }
        return input + "." + Base64.urlEncode(Array(try ed25519.signature(for: Array(input.utf8))))
    }

    /// The JWKs of the keys.
    static let jwks: [String] = {
        guard let p256, let ed25519 else { return [] }
        let point = p256.publicKey.rawRepresentation
        let (x, y) = (Base64.urlEncode(point.prefix(32)), Base64.urlEncode(point.suffix(32)))
        return [
            #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#,
            #"{"crv":"Ed25519","kty":"OKP","x":"\#(Base64.urlEncode(ed25519.publicKey.rawRepresentation))"}"#,
        ]
    }()

    /// RFC 7638: these JWKs are written as it wants them.
    static let thumbprints = jwks.map { Array(SHA256.hash(data: Array($0.utf8))) }

    /// The header of a proof by the Ed25519 key.
    public static func header() -> String { #"{"typ":"dpop+jwt","alg":"EdDSA","jwk":\#(jwks.last ?? "")}"# }

    /// A right proof by the P-256 key.
    public static func proof() throws -> String {
        guard let p256, let jwk = jwks.first else { return "" }
        let header = #"{"typ":"dpop+jwt","alg":"ES256","jwk":\#(jwk)}"#
        let payload = #"{"jti":"1","htm":"POST","htu":"\#(url)","iat":\#(Int(now))}"#
        let input = [header, payload].map { Base64.urlEncode(Array($0.utf8)) }.joined(separator: ".")
        return input + "." + Base64.urlEncode(try p256.signature(for: Array(input.utf8)).rawRepresentation)
    }
}
