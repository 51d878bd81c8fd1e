/// A `grant_type` value (RFC 6749 §4), compared byte for byte.
public struct GrantType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value as sent on the wire.
    public let rawValue: String

    /// Wraps a wire value.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// E-mail code.
    public static let otp = GrantType(rawValue: "urn:cocoar:otp")
    /// Magic link.
    public static let magic = GrantType(rawValue: "urn:cocoar:magic")
    /// Passkey.
    public static let passkey = GrantType(rawValue: "urn:cocoar:passkey")
    /// A trusted device signs itself in.
    public static let device = GrantType(rawValue: "urn:postern:device")
    /// A trusted device approves (CIBA Core 1.0 §10.1).
    public static let ciba = GrantType(rawValue: "urn:openid:params:grant-type:ciba")
    /// A client acts for itself (RFC 6749 §4.4).
    public static let clientCredentials = GrantType(rawValue: "client_credentials")
    /// Authorization code (RFC 6749 §4.1).
    public static let authorizationCode = GrantType(rawValue: "authorization_code")
    /// Refresh (RFC 6749 §6).
    public static let refreshToken = GrantType(rawValue: "refresh_token")

    /// The permission string a client needs for this grant.
    public var permission: String { "gt:" + rawValue }

    /// The wire value.
    public var description: String { rawValue }
}
