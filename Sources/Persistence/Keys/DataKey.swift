import Crypto

/// A key of one realm for one purpose, which protects what must outlive a line of the key file (docs/decisions/0024).
///
/// 32 random bytes, stored sealed by a line: a new line re-wraps them and leaves what they protect alone.
public struct DataKey: Sendable, Redacted {
    /// What a data key protects. The raw values are those of the column `data_key.purpose`.
    public enum Purpose: String, Sendable, CaseIterable {
        /// Private halves of signing keys; seals.
        case signingKey = "signing-key"
        /// TOTP seeds; seals.
        case totpSeed = "totp-seed"
        /// Recovery codes; keys HMACs.
        case recoveryCode = "recovery-code"
        /// Fixed codes of test identities; keys HMACs.
        case testCode = "test-code"
        /// Subjects of addresses that are proven without an account; keys HMACs.
        case addressSubject = "address-subject"
    }

    /// The row's id.
    public let id: UUIDValue
    private let sealing: SealingKey
    private let mac: HMAC<SHA256>

    /// The first bytes of everything sealed under a data key; the key's id follows. `postern.data_key_of` reads the
    /// same layout.
    static let marker: [UInt8] = [0x02] + Array("pdk".utf8)
    private static let headerCount = marker.count + 16

    /// - Parameter content: a key of 32 bytes.
    init?(id: UUIDValue, content: [UInt8]) {
        guard content.count == 32 else { return nil }
        self.id = id
        let key = SymmetricKey(data: content)
        sealing = SealingKey(key)
        mac = HMAC(key: key)
    }

    /// The data key that sealed something; `nil` when it names none.
    public static func id(in sealed: [UInt8]) -> UUIDValue? {
        guard sealed.starts(with: marker), sealed.count >= headerCount + SealingKey.overhead else { return nil }
        return UUIDValue(bytes: sealed[marker.count..<headerCount])
    }

    /// Encrypts and authenticates: `02 "pdk" ‖ id (16) ‖ nonce (24) ‖ ciphertext ‖ tag (16)`.
    /// - Parameter aad: the row the data belongs to; needed again to open it.
    public func seal(_ plaintext: [UInt8], aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        try sealing.seal(plaintext, header: Self.marker + id.bytes, aad: aad)
    }

    /// Opens what ``seal(_:aad:)`` made.
    public func open(_ sealed: [UInt8], aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        guard Self.id(in: sealed) == id else { throw .cannotOpen }
        return try sealing.open(sealed, headerCount: Self.headerCount, aad: aad)
    }

    /// HMAC-SHA-256 of `parts`, each preceded by its length.
    public func hmac(_ parts: [[UInt8]]) -> [UInt8] {
        mac.authenticationCode(of: parts)
    }
}

/// A data key as the database holds it: sealed by a line of the key file.
public struct SealedDataKey: Sendable, Equatable {
    /// The row's id.
    public let id: UUIDValue
    /// What it protects.
    public let purpose: DataKey.Purpose
    /// The sealed content.
    public let sealed: [UInt8]

    public init(id: UUIDValue, purpose: DataKey.Purpose, sealed: [UInt8]) {
        self.id = id
        self.purpose = purpose
        self.sealed = sealed
    }

    fileprivate var aad: [UInt8] { id.bytes + Array(purpose.rawValue.utf8) }
}

extension Keyring {
    /// Opens a data key. Its purpose and row are authenticated: no key can be put in another's place.
    public func open(_ key: SealedDataKey, realm: UUIDValue) throws(KeyringError) -> DataKey {
        let content = try open(key.sealed, for: .dataKey, realm: realm, aad: key.aad)
        guard let opened = DataKey(id: key.id, content: content) else { throw .cannotOpen }
        return opened
    }

    /// A new random data key, sealed by the newest line.
    public func makeDataKey(_ purpose: DataKey.Purpose, realm: UUIDValue) throws(KeyringError) -> SealedDataKey {
        let unsealed = SealedDataKey(id: .random(), purpose: purpose, sealed: [])
        let sealed = try seal(randomBytes(32), for: .dataKey, realm: realm, aad: unsealed.aad)
        return SealedDataKey(id: unsealed.id, purpose: purpose, sealed: sealed)
    }

    /// The same data key, sealed by the newest line.
    public func reseal(_ key: SealedDataKey, realm: UUIDValue) throws(KeyringError) -> SealedDataKey {
        let content = try open(key.sealed, for: .dataKey, realm: realm, aad: key.aad)
        return SealedDataKey(
            id: key.id, purpose: key.purpose, sealed: try seal(content, for: .dataKey, realm: realm, aad: key.aad))
    }
}
