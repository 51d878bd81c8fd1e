import Crypto
import Foundation
@testable import Grants
import Persistence

extension Realm {
    /// A realm with a public client `app` and a confidential client `api` (secret `s3cret`), as `postern.realm_config`
    /// would answer.
    static func fixture(
        id: UUIDValue = .random(), version: Int = 1,
        nativeGrantsEnabled: Bool = true, rateLimits: [RateLimit.Policy: [RateLimit.Dimension: RateLimit]] = [:],
        clients: [Client] = [.fixture("app"), .fixture("api", secret: "s3cret")],
        signingKeys: [SealedSigningKey] = [], issuer: String = "https://r.example"
    ) throws -> Realm {
        Realm(
            RealmContents(
                id: id, version: version, slug: "r", displayName: "R", issuer: issuer,
                primaryDomain: "r.example",
                nativeGrantsEnabled: nativeGrantsEnabled,
                policy: Policy(
                    accessTokenLifetime: 900, refreshTokenLifetime: 1_209_600, refreshRetryWindow: 120,
                    sessionLifetime: 31_536_000,
                    otpLifetime: 600, magicLinkLifetime: 900, otpDigits: 6, otpAttempts: 5, resendCooldown: 60,
                    ceremonyLifetime: 300),
                clients: Dictionary(uniqueKeysWithValues: clients.map { ($0.clientID, $0) }),
                scopes: [
                    "openid": Scope(name: "openid", resources: [], inDiscovery: true, enabled: true),
                    "offline_access": Scope(name: "offline_access", resources: [], inDiscovery: true, enabled: true),
                    "orders": Scope(
                        name: "orders", resources: ["https://orders.example"], inDiscovery: true, enabled: true),
                    "off": Scope(name: "off", resources: [], inDiscovery: true, enabled: false),
                ],
                rateLimits: rateLimits, registrationFields: RegistrationFields(firstName: .off, lastName: .off),
                signingKeys: signingKeys))
    }
}

extension Client {
    static func fixture(
        _ clientID: String, secret: String? = nil, enabled: Bool = true,
        permissions: Set<String> = ["gt:urn:cocoar:otp", "gt:refresh_token", "scp:orders"], keys: [ClientKey] = [],
        key: UUIDValue = .random(), requiresDPoP: Bool = false, signingAlgorithm: SigningAlgorithm? = nil
    ) -> Client {
        Client(
            key: key, clientID: clientID, isConfidential: secret != nil || !keys.isEmpty, enabled: enabled,
            requiresDPoP: requiresDPoP,
            issuesJWTAccessTokens: false,
            rpID: nil, secretHashes: secret.map { [sha256($0)] } ?? [], permissions: permissions,
            accessTokenLifetime: nil,
            refreshTokenLifetime: nil, webOrigins: [], androidOrigins: [], iosApps: [], androidApps: [],
            keys: keys, signingAlgorithm: signingAlgorithm)
    }
}

func sha256(_ text: String) -> [UInt8] {
    Array(SHA256.hash(data: Array(text.utf8)))
}

extension Keyring {
    /// A ring of fixed keys, newest first.
    static func fixture(_ numbers: UInt8...) -> Keyring {
        let lines = (numbers.isEmpty ? [1] : numbers).map { number in
            Data(repeating: number, count: 32).base64EncodedString()
        }
        do {
            return try Keyring(parsing: lines.joined(separator: "\n"))
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension Proofs {
    /// Proofs of a realm whose database is not asked.
    static func fixture(_ database: Database, clock: @escaping @Sendable () -> Double) -> Proofs {
        Proofs(
            verifier: DPoPVerifier(nonces: DPoPNonces(keyring: .fixture()), clock: clock), store: ProofStore(database),
            latest: clock)
    }
}
