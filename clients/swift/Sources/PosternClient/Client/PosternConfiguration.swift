import Foundation

/// Which server, which client, and what the library works with.
public struct PosternConfiguration: Sendable {
    /// - Parameters:
    ///   - origin: of the realm or App, such as `https://id.example.com`; `http` on a loopback host only.
    ///   - clientID: `client_id` of a public client.
    public init(origin: URL, clientID: String) {
        self.origin = origin
        self.clientID = clientID
        scopes = ["openid", "offline_access"]
        #if canImport(Security)
            store = KeychainStore()
        #else
            store = FileStore()
        #endif
        key = .automatic
        transport = URLSessionTransport()
    }

    /// The origin of the realm or App.
    public let origin: URL
    /// `client_id`.
    public let clientID: String
    /// What a sign-in asks for; `openid` is always among them.
    public var scopes: [String]
    /// Where the pages send the browser back to, as registered for the client.
    public var redirectURI: URL?
    /// Where key, session and requests are kept.
    public var store: any SessionStore
    /// How requests are bound to this device.
    public var key: KeyPolicy
    /// What sends requests.
    public var transport: any Transport
    /// `User-Agent` of the requests: what the user sees in the list of sessions. By default the system's.
    public var userAgent: String?
    /// Is called for every ``LogEvent``, from any thread; it must not block.
    public var log: (@Sendable (LogEvent) -> Void)?
}

extension PosternConfiguration: Discreet {
    /// Origin, client and scopes.
    public var shown: [(String, any Sendable)] {
        [("origin", origin), ("clientID", clientID), ("scopes", scopes), ("key", key)]
    }
}

/// How requests are bound to this device (RFC 9449).
public enum KeyPolicy: Sendable {
    /// A key of the Secure Enclave where there is one, else a software key.
    case automatic
    /// A key in the store.
    case software
    /// Bearer tokens (RFC 6750). Trusted devices and possession still have a software key.
    case none
}
