public import Persistence

/// One tenant as the token endpoint sees it: an immutable snapshot of everything an administrator configured.
///
/// A snapshot is replaced as a whole, never changed. The checks before a grant run against it; the statement that
/// consumes a factor checks again in the database (docs/decisions/0000, F1).
public struct Realm: Sendable {
    /// `realm.id`.
    public let id: UUIDValue
    /// Differs after every change of the realm's configuration.
    public let version: Int
    /// The name administrators use.
    public let slug: String
    /// The name users read in mails and pages.
    public let displayName: String
    /// `iss`: the realm's public origin, without a trailing slash.
    public let issuer: String
    /// The fallback RP-ID, and the host of the domain-bound code line in mails.
    public let primaryDomain: String?
    /// Whether native grants may start new sign-ins; on an App's host also by the App's switch.
    public internal(set) var nativeGrantsEnabled: Bool
    /// Lifetimes and limits of single-use things, in seconds.
    public let policy: Policy
    /// By `client_id`.
    public let clients: [String: Client]
    /// By name.
    public let scopes: [String: Scope]
    /// By policy and dimension; defaults merged with what the administrator set.
    public internal(set) var rateLimits: [RateLimit.Policy: [RateLimit.Dimension: RateLimit]]
    /// Which names a new user must give.
    public internal(set) var registrationFields: RegistrationFields
    /// Newest first; the private half is sealed.
    public let signingKeys: [SealedSigningKey]
    /// What verifies an ``IDTokenHint``: the signing keys, and the retired ones until they are deleted.
    var hintKeys: [HintKey] = []
    /// What the codes of test identities are compared under; empty in a realm that never had one.
    var testCodeKeys: [SealedDataKey] = []
    /// The App whose host the request named; `nil` on the realm's own hosts.
    public internal(set) var app: App?
    /// The realm as each App's host shows it, by host.
    var views: [String: Realm] = [:]
    /// The row keys of all clients that belong to some App.
    var clientsOfApps: Set<UUIDValue> = []

    /// The realm's lifetimes, all in seconds unless named otherwise.
    public struct Policy: Sendable, Equatable {
        /// Default lifetime of an access token.
        public let accessTokenLifetime: Int
        /// Default lifetime of an unused refresh token.
        public let refreshTokenLifetime: Int
        /// How long the immediate predecessor still gets the same successor.
        public let refreshRetryWindow: Int
        /// Absolute lifetime of a session.
        public let sessionLifetime: Int
        /// Lifetime of a mailed code.
        public let otpLifetime: Int
        /// Lifetime of a magic link and of the handle that polls for it.
        public let magicLinkLifetime: Int
        /// Tries per `auth_session` handle.
        public let otpAttempts: Int
        /// Time between two mails to one address.
        public let resendCooldown: Int
        /// Time between begin and redemption of a WebAuthn ceremony.
        public let ceremonyLifetime: Int
    }
}

/// Which names a request for a code may or must carry (`admin.set_registration_fields`).
public struct RegistrationFields: Sendable, Equatable {
    /// What the administrator decided for one field.
    public enum Rule: String, Sendable {
        case off = "Off"
        case optional = "Optional"
        case required = "Required"
    }

    /// `FirstName`.
    public let firstName: Rule
    /// `LastName`.
    public let lastName: Rule
}

/// A scope the realm knows (`admin.put_scope`).
public struct Scope: Sendable, Equatable {
    /// The scope's name, a `scope-token` of RFC 6749 §3.3.
    public let name: String
    /// The audiences a token with this scope is for (RFC 8707).
    public let resources: [String]
    /// Whether discovery lists it.
    public let inDiscovery: Bool
    /// A disabled scope is answered like an unknown one.
    public let enabled: Bool
}

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

/// A signing key as stored: public part readable, private part sealed under a data key.
public struct SealedSigningKey: Sendable, Equatable {
    /// The key identifier, in JWT headers and the JWK Set.
    public let kid: String
    /// JWS algorithm (RFC 7518 §3.1).
    public let alg: String
    /// Whether it signs for every client that asks for no algorithm of its own.
    public let forRealm: Bool
    /// The public JWK as JSON text.
    public let publicJWK: String
    /// The sealed private key.
    public let sealedPrivateKey: [UInt8]
    /// The data key that opens it, sealed; `nil` where version 0 sealed the private key directly under a line.
    public let dataKey: SealedDataKey?
    /// Seconds since the epoch, database clock: not used to sign before this.
    public let activatesAt: Double
    /// Seconds since the epoch: gone from the JWK Set after this.
    public let retiresAt: Double?
}
