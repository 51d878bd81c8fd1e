public import Persistence

/// A client of the realm.
public struct Client: Sendable, Equatable {
    /// The row's key, which is not the `client_id`.
    public let key: UUIDValue
    /// `client_id` (RFC 6749 §2.2).
    public let clientID: String
    /// `confidential` clients authenticate with a secret, `public` ones must not send one.
    public let isConfidential: Bool
    /// A disabled client is answered like an unknown one.
    public let enabled: Bool
    /// Whether its tokens must be bound to a key (RFC 9449).
    public let requiresDPoP: Bool
    /// Whether the number that it shows must be typed on the device to approve; always so for a public client.
    public internal(set) var matchesNumbers = true
    /// Whether access tokens are JWTs (RFC 9068) instead of references.
    public let issuesJWTAccessTokens: Bool
    /// The WebAuthn relying party identifier of this client, if it has its own.
    public let rpID: String?
    /// SHA-256 of the secret, 32 bytes; the previous one only while its overlap lasts.
    public let secretHashes: [[UInt8]]
    /// `gt:`, `ept:` and `scp:` strings.
    public let permissions: Set<String>
    /// Seconds; `nil` takes the realm's.
    public let accessTokenLifetime: Int?
    /// Seconds; `nil` takes the realm's.
    public let refreshTokenLifetime: Int?
    /// Registered web origins.
    public let webOrigins: [String]
    /// `android:apk-key-hash:…` of the registered Android apps.
    public let androidOrigins: [String]
    /// `TEAMID.bundle.id` of the registered iOS apps.
    public let iosApps: [String]
    /// The registered Android apps.
    public let androidApps: [AndroidApp]
    /// Public keys that verify its assertions.
    public let keys: [ClientKey]
    /// The algorithm its JWTs are signed with; `nil` takes the realm's.
    public let signingAlgorithm: SigningAlgorithm?
    /// The name users read.
    public internal(set) var displayName = ""
    /// The resources (RFC 8707) that it serves: with `ept:introspection` it sees tokens for one of them only; empty:
    /// every token.
    public internal(set) var resources: [String] = []
    /// What the authorization endpoint and the pages do for it.
    public internal(set) var hosted = HostedClient()

    /// An Android app as Digital Asset Links name it.
    public struct AndroidApp: Sendable, Equatable, Decodable {
        /// Package name.
        public let packageName: String
        /// Colon-separated hexadecimal SHA-256 of the signing certificates.
        public let sha256CertFingerprints: [String]
    }

    /// Whether one of the registered web origins stands for `origin`: it is the same, or every port of `localhost`.
    public static func isRegistered(_ origin: String, among origins: [String]) -> Bool {
        if origins.contains(origin) { return true }
        guard origins.contains("http://localhost:*") else { return false }
        let port = origin.dropFirst("http://localhost".count)
        return origin.hasPrefix("http://localhost")
            && (port.isEmpty || port.first == ":" && (UInt16(port.dropFirst()) ?? 0) > 0)
    }

    /// Whether the client may use a grant.
    public func mayUse(_ grantType: GrantType) -> Bool {
        permissions.contains(grantType.permission)
    }

    /// Whether the client may ask for a scope. `openid` and `offline_access` need no `scp:` permission.
    public func mayRequest(scope: String) -> Bool {
        scope == "openid" || scope == "offline_access" || permissions.contains("scp:" + scope)
    }
}

/// What an administrator configured of a client for the authorization code flow.
public struct HostedClient: Sendable, Equatable {
    /// When the pages ask the user to allow what the client wants.
    public enum Consent: String, Sendable {
        /// Never.
        case implicit
        /// Once per set of scopes.
        case explicit
        /// Each time.
        case systematic
    }

    /// When the pages ask.
    public internal(set) var consent = Consent.implicit
    /// Whether authorization requests need a `code_challenge`.
    public internal(set) var requiresPKCE = true
    /// Whether authorization requests must be pushed (RFC 9126).
    public internal(set) var requiresPAR = false
    /// Where pages without a way back lead.
    public internal(set) var homeURI: String?
    /// Where authorization responses may go.
    public internal(set) var redirectURIs: [String] = []
    /// Where a browser may go after a sign-out.
    public internal(set) var postLogoutURIs: [String] = []
}

extension Client {
    /// Whether authorization requests need a `code_challenge`.
    public var requiresPKCE: Bool { hosted.requiresPKCE }
    /// Whether authorization requests must be pushed.
    public var requiresPAR: Bool { hosted.requiresPAR }

    /// Whether a redirect URI is one of the client's, byte for byte. For a public client a loopback URI matches with
    /// any port (RFC 8252 §7.3).
    public func mayRedirect(to uri: String) -> Bool {
        if hosted.redirectURIs.contains(uri) { return true }
        guard !isConfidential, let asked = LoopbackURI(uri) else { return false }
        return hosted.redirectURIs.contains { LoopbackURI($0) == asked }
    }

    /// `http://127.0.0.1`, `http://[::1]` or `http://localhost`, without its port.
    private struct LoopbackURI: Equatable {
        let host: Substring
        let path: Substring

        init?(_ uri: String) {
            for host in ["http://127.0.0.1", "http://[::1]", "http://localhost"] where uri.hasPrefix(host) {
                var rest = uri[...].dropFirst(host.count)
                if rest.first == ":" {
                    let port = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
                    guard port.first != "0", (1...5).contains(port.utf8.count), (Int(port) ?? 0) <= 65535 else {
                        return nil
                    }
                    rest = rest.dropFirst(1 + port.count)
                }
                guard rest.isEmpty || rest.first == "/" else { return nil }
                self.host = uri[...].prefix(host.count)
                path = rest
                return
            }
            return nil
        }
    }
}

extension Realm {
    /// Seconds; the client's own value wins over the realm's.
    func accessTokenLifetime(for client: Client) -> Int {
        client.accessTokenLifetime ?? policy.accessTokenLifetime
    }

    /// Seconds; the client's own value wins over the realm's.
    func refreshTokenLifetime(for client: Client) -> Int {
        client.refreshTokenLifetime ?? policy.refreshTokenLifetime
    }
}
