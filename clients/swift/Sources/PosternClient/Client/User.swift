import Foundation

/// Who is signed in, by the claims of the ID token (OpenID Connect Core §2).
public struct User: Sendable, Hashable, Identifiable {
    /// `sub`.
    public let id: String
    /// `sid`.
    public let sessionID: String
    /// `email`, with scope `email`.
    public let email: String?
    /// `email_verified`.
    public let emailVerified: Bool
    /// `phone_number`, with scope `phone`.
    public let phone: String?
    /// `phone_number_verified`.
    public let phoneVerified: Bool
    /// `name`, with scope `profile`.
    public let name: String?
    /// `auth_time`: when the person signed in.
    public let authenticatedAt: Date
    /// `amr` (RFC 8176).
    public let methods: [String]
    /// `acr`.
    public let level: String?
    /// All claims.
    public let claims: [String: JSONValue]
}

extension User: Discreet {
    /// Identifiers, time and methods; no address, no name.
    public var shown: [(String, any Sendable)] {
        [
            ("id", id), ("sessionID", sessionID), ("authenticatedAt", authenticatedAt), ("methods", methods),
            ("level", level),
        ]
    }
}

extension User {
    /// `nil` without `sub`, `sid` or a time of the sign-in.
    init?(claims: [String: JSONValue]) {
        guard let id = claims["sub"]?.string, let sessionID = claims["sid"]?.string,
            let authenticatedAt = claims["auth_time"]?.date ?? claims["iat"]?.date
        else { return nil }
        self.init(
            id: id, sessionID: sessionID, email: claims["email"]?.string,
            emailVerified: claims["email_verified"]?.bool ?? false, phone: claims["phone_number"]?.string,
            phoneVerified: claims["phone_number_verified"]?.bool ?? false, name: claims["name"]?.string,
            authenticatedAt: authenticatedAt, methods: claims["amr"]?.strings ?? [], level: claims["acr"]?.string,
            claims: claims)
    }
}
