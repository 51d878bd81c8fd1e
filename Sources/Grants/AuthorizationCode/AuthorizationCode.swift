import Encoding
import Crypto
import Persistence

/// An authorization code (RFC 6749 §1.3.1): `pac_`, `address.` if it proves an address, and 32 random
/// bytes in base64url. Only its hash is stored.
public struct AuthorizationCode: Sendable {
    /// As the client gets it.
    public let text: String

    private static let prefix = "pac_"

    /// What follows the prefix in a code that proves an address: no base64url has a dot.
    private static let addressMark = "address."

    /// A code that has not been issued yet.
    /// - Parameter provesAddress: it is redeemed for the proof of an address and opens no session.
    public init(provesAddress: Bool = false) {
        text = Self.prefix + (provesAddress ? Self.addressMark : "") + Base64.urlEncode(randomBytes(32))
    }

    /// Whether it is redeemed for the proof of an address.
    var provesAddress: Bool { text.hasPrefix(Self.prefix + Self.addressMark) }

    /// A presented code; `nil` for what cannot be one.
    init?(_ presented: String) {
        guard presented.utf8.count <= 256, presented.hasPrefix(Self.prefix) else { return nil }
        text = presented
    }

    /// SHA-256 of the text.
    public var hash: [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }
}

/// The session cookie of a browser: `pss_` and 32 random bytes in base64url. Only its hash is stored.
public struct BrowserCookie: Sendable {
    /// The cookie's value.
    public let text: String

    private static let prefix = "pss_"

    /// A cookie for a browser that signs in.
    public init() {
        text = Self.prefix + Base64.urlEncode(randomBytes(32))
    }

    /// A cookie that a browser showed; `nil` for what cannot be one.
    public init?(_ shown: some StringProtocol) {
        guard shown.utf8.count == 47, shown.hasPrefix(Self.prefix),
            Base64.urlDecode(shown.dropFirst(Self.prefix.count))?.count == 32
        else { return nil }
        text = String(shown)
    }

    /// SHA-256 of the text.
    public var hash: [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }
}

/// A session cookie that a browser is given, and for how long.
public struct SessionCookie: Sendable {
    /// The cookie.
    public let cookie: BrowserCookie
    /// `Max-Age`.
    public let seconds: Int

    /// - Parameter end: seconds until the session ends, however much it is used.
    public init(_ cookie: BrowserCookie, of realm: Realm, until end: Double) {
        self.cookie = cookie
        seconds = max(0, Int(min(Double(realm.hosted.singleSignOnIdle), end)))
    }
}
