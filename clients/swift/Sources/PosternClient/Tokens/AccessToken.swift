import Foundation

/// An access token (RFC 6749 §1.4) and how to present it.
public struct AccessToken: Sendable {
    /// The scheme of `Authorization`.
    public enum TokenType: String, Sendable { case bearer = "Bearer", dpop = "DPoP" }

    /// The secret.
    public let value: String
    /// `token_type`. A `DPoP` token needs a proof with each request: see ``PosternClient/authorized(_:for:)``.
    public let type: TokenType
    /// `scope` of the answer.
    public let scopes: [String]
    /// By the clock of the device.
    public let expiresAt: Date
}

extension AccessToken {
    /// Whether a text can be presented as one (RFC 6749 appendix A.12): it has nothing that ends a field of the header.
    static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }
}

extension AccessToken: Discreet {
    /// Everything but the token.
    public var shown: [(String, any Sendable)] { [("type", type), ("scopes", scopes), ("expiresAt", expiresAt)] }
}
