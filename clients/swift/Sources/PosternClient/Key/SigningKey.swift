import Foundation

/// A P-256 key that signs ES256 (RFC 7518 §3.4).
protocol SigningKey: Sendable {
    /// x and y, 32 bytes each.
    var point: Data { get }
    /// r and s, 32 bytes each. - Throws: ``KeyFailure``.
    func signature(of message: Data) async throws -> Data
}

/// Why a key does not sign.
enum KeyFailure: Error {
    /// The device is locked; it will sign later.
    case locked
    /// The key is gone, or was never one.
    case lost
}

/// Makes and opens the keys of a store.
protocol Keys: Sendable {
    /// - Throws: ``KeyFailure``.
    func make(_ policy: KeyPolicy) async throws -> StoredKey
    /// - Throws: ``KeyFailure``.
    func open(_ stored: StoredKey) async throws -> any SigningKey
}

/// The keys of this platform.
struct PlatformKeys: Keys {
    func make(_ policy: KeyPolicy) async throws -> StoredKey {
        #if canImport(CryptoKit) && canImport(Security)
            if policy == .automatic, EnclaveKey.isAvailable { return try await EnclaveKey.make() }
        #endif
        return StoredKey(.software, try SoftwareKey().value)
    }

    func open(_ stored: StoredKey) async throws -> any SigningKey {
        switch stored.kind {
        case .software: return try SoftwareKey(stored.value)
        case .enclave:
            #if canImport(CryptoKit) && canImport(Security)
                return try await EnclaveKey.open(stored.value)
            #else
                throw KeyFailure.lost
            #endif
        }
    }
}

extension SigningKey {
    /// The public key as `jwk` (RFC 7517).
    var jwk: JSONValue {
        [
            "kty": "EC", "crv": "P-256", "x": .string(Base64URL.encode(point.prefix(32))),
            "y": .string(Base64URL.encode(point.suffix(32))),
        ]
    }

    /// The SHA-256 thumbprint (RFC 7638): of the members in order of their names, without white space.
    var thumbprint: String { Base64URL.encode(Digest.sha256(jwk.data)) }

    /// A compact JWS with the public key in its header (RFC 7515 §3.1). - Throws: ``KeyFailure``.
    func sign(type: String, _ claims: JSONValue) async throws -> String {
        let header: JSONValue = ["typ": .string(type), "alg": "ES256", "jwk": jwk]
        let input = Base64URL.encode(header.data) + "." + Base64URL.encode(claims.data)
        return input + "." + Base64URL.encode(try await signature(of: Data(input.utf8)))
    }
}
