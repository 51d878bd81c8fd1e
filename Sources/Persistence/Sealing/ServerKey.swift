import Crypto

/// One 32-byte key of the key file, held as the subkeys derived from it (HKDF-SHA-256, RFC 5869), one per purpose.
public struct ServerKey: Sendable {
    /// What a keyed hash is for. Each purpose has a key of its own, so that no hash can stand for another.
    public enum Purpose: Int, Sendable, CaseIterable {
        /// One-time codes as the database knows them (design decision 8).
        case codePepper
        /// Recovery codes as the database knows them.
        case recoveryCode
        /// The secret of the next refresh token.
        case refreshSuccessor
        /// The authenticity of a refresh token.
        case refreshTag
        /// The numbers a link's page offers beside the right one.
        case matchDecoys
        /// Addresses and accounts in logs and audit rows.
        case pseudonym

        /// What the subkey is derived with; never to be changed.
        fileprivate var label: String {
            switch self {
            case .codePepper: "code pepper"
            case .recoveryCode: "recovery code pepper"
            case .refreshSuccessor: "refresh derive"
            case .refreshTag: "refresh tag"
            case .matchDecoys: "match decoys"
            case .pseudonym: "pseudonym"
            }
        }
    }

    /// Names the key in tokens and sealed data: 4 bytes, telling nothing about it.
    public let id: [UInt8]
    /// By purpose, the hashes with their keys already mixed in: half the work of a short HMAC.
    private let macs: [HMAC<SHA256>]
    let sealingKey: SymmetricKey

    /// - Parameter bytes: 32 bytes.
    init(_ bytes: [UInt8]) {
        let key = SymmetricKey(data: bytes)
        func derive(_ label: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Array("postern \(label)".utf8), outputByteCount: 32)
        }
        id = Array(SHA256.hash(data: Array("postern key id".utf8) + bytes).prefix(4))
        macs = Purpose.allCases.map { HMAC(key: derive($0.label)) }
        sealingKey = derive("seal")
    }

    /// HMAC-SHA-256 of `parts`, each preceded by its length (8 bytes, big endian), so that no two lists of parts are alike.
    public func hmac(_ purpose: Purpose, _ parts: [[UInt8]]) -> [UInt8] {
        var mac = macs[purpose.rawValue]
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
