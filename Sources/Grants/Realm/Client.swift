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

    /// An Android app as Digital Asset Links name it.
    public struct AndroidApp: Sendable, Equatable, Decodable {
        /// Package name.
        public let packageName: String
        /// Colon-separated hexadecimal SHA-256 of the signing certificates.
        public let sha256CertFingerprints: [String]
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
