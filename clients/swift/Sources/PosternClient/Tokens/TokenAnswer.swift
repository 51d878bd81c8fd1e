import Foundation

/// A success of the token endpoint (RFC 6749 §5.1).
struct TokenAnswer: Sendable {
    let token: AccessToken
    let refreshToken: String?
    let idToken: IDToken?
    let issuedAt: Date

    /// `nil` if it is not what 200 promises.
    init?(_ json: JSONValue?, at now: Date) {
        guard let value = json?["access_token"]?.string, AccessToken.isToken(value),
            let type = json?["token_type"]?.string.flatMap(Self.type), let life = json?["expires_in"]?.number,
            life > 0, life <= 366 * 86_400
        else { return nil }
        let scopes = json?["scope"]?.string?.split(separator: " ").map(String.init) ?? []
        token = AccessToken(value: value, type: type, scopes: scopes, expiresAt: now.addingTimeInterval(life))
        refreshToken = json?["refresh_token"]?.string
        issuedAt = now
        guard let text = json?["id_token"]?.string else {
            idToken = nil
            return
        }
        guard let idToken = IDToken(text) else { return nil }
        self.idToken = idToken
    }

    private static func type(_ text: String) -> AccessToken.TokenType? {
        switch text.lowercased() {
        case "bearer": .bearer
        case "dpop": .dpop
        default: nil
        }
    }
}
