import Crypto
import Synchronization

/// One 32-byte line of the key file, held as the subkeys derived from it (HKDF-SHA-256, RFC 5869): one per purpose for
/// keyed hashes, one per purpose and realm for sealing.
public struct ServerKey: Sendable, Redacted {
    /// The purpose of a keyed hash. Each purpose has a key of its own, so that a hash made for one is never valid for
    /// another.
    public enum Purpose: Int, Sendable, CaseIterable {
        /// One-time codes as the database knows them (docs/decisions/0002).
        case codePepper
        /// The secret of the next refresh token.
        case refreshSuccessor
        /// The authenticity of a refresh token.
        case refreshTag
        /// The authenticity of a nonce for proofs of possession.
        case dpopNonce
        /// The session of a request that may come again, when its answer was lost.
        case signIn

        /// What the subkey is derived with; never to be changed.
        fileprivate var label: String {
            switch self {
            case .codePepper: "code pepper"
            case .refreshSuccessor: "refresh derive"
            case .refreshTag: "refresh tag"
            case .dpopNonce: "dpop nonce"
            case .signIn: "sign-in"
            }
        }
    }

    /// Names the line in tokens, sealed data and reports: 4 bytes, telling nothing about it.
    public let id: [UInt8]
    /// By purpose, the hashes with their keys already mixed in: half the work of a short HMAC.
    private let macs: [HMAC<SHA256>]
    private let sealingKeys: SealingKeys

    /// - Parameter bytes: 32 bytes.
    init(_ bytes: [UInt8]) {
        let key = SymmetricKey(data: bytes)
        func derive(_ label: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array("postern \(label)".utf8), outputByteCount: 32)
        }
        id = Array(SHA256.hash(data: Array("postern key id".utf8) + bytes).prefix(4))
        macs = Purpose.allCases.map { HMAC(key: derive($0.label)) }
        sealingKeys = SealingKeys(root: derive("sealing keys"))
    }

    /// The id in hexadecimal, as commands and metrics show it.
    public var name: String { Self.name(id) }

    /// A line's id in hexadecimal.
    public static func name(_ id: some Sequence<UInt8>) -> String {
        id.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// HMAC-SHA-256 of `parts`, each preceded by its length (8 bytes, big endian), so that no two lists of parts are
    /// alike.
    public func hmac(_ purpose: Purpose, _ parts: [[UInt8]]) -> [UInt8] {
        macs[purpose.rawValue].authenticationCode(of: parts)
    }

    /// The key that seals for a purpose in a realm.
    func sealingKey(_ purpose: SealPurpose, realm: UUIDValue) -> SealingKey {
        sealingKeys.key(purpose, realm: realm)
    }
}

extension HMAC where H == SHA256 {
    /// Of `parts`, each preceded by its length (8 bytes, big endian).
    func authenticationCode(of parts: [[UInt8]]) -> [UInt8] {
        var mac = self
        var message: [UInt8] = []
        message.reserveCapacity(parts.reduce(0) { $0 + 8 + $1.count })
        for part in parts {
            withUnsafeBytes(of: UInt64(part.count).bigEndian) { message.append(contentsOf: $0) }
            message.append(contentsOf: part)
        }
        mac.update(data: message)
        return mac.finalize().withUnsafeBytes { Array($0) }
    }
}

/// The sealing keys of a line, derived when they are first needed. Bounded: one that was put out is derived again.
private final class SealingKeys: Sendable, Redacted {
    private struct Name: Hashable {
        let purpose: SealPurpose
        let realm: UUIDValue
    }

    private let root: SymmetricKey
    private let derived = Mutex<[Name: SealingKey]>([:])
    private static let maximumCount = 4096

    init(root: SymmetricKey) {
        self.root = root
    }

    func key(_ purpose: SealPurpose, realm: UUIDValue) -> SealingKey {
        let name = Name(purpose: purpose, realm: realm)
        if let key = derived.withLock({ $0[name] }) { return key }
        let key = SealingKey(
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: root, info: Array("postern seal \(purpose.label)".utf8) + [0] + realm.bytes,
                outputByteCount: 32))
        derived.withLock { derived in
            if derived.count >= Self.maximumCount { derived.remove(at: derived.startIndex) }
            derived[name] = key
        }
        return key
    }
}
