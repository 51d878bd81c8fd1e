import Foundation

/// The claims of an ID token. It came from the token endpoint over TLS, so its signature needs no check (OpenID Connect
/// Core §3.1.3.7, step 6).
struct IDToken: Sendable {
    let text: String
    let claims: [String: JSONValue]

    /// `nil` if it is no JWT of a session: `iss`, `aud`, `sub` and `sid` are needed.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(String(parts[1])),
            let claims = JSONValue(payload)?.object,
            claims["iss"]?.string != nil, User(claims: claims) != nil
        else { return nil }
        self.text = text
        self.claims = claims
    }

    var issuer: String { claims["iss"]?.string ?? "" }
    var audiences: [String] { claims["aud"]?.strings ?? claims["aud"]?.string.map { [$0] } ?? [] }
    var nonce: String? { claims["nonce"]?.string }
    var issuedAt: Date? { claims["iat"]?.date }
    var user: User? { User(claims: claims) }
}
