import Crypto
import FoundationEssentials

/// Encrypts and authenticates any number of messages under one key.
///
/// Each message has an AES-256-GCM key of its own, `HMAC-SHA-256(key, nonce)` over 24 random bytes, so the nonce of
/// AES-GCM itself is always zero and its limits (2³² messages with random nonces, SP 800-38D §8.3) are never met: two
/// messages share a key only if 192 random bits repeat, after 2⁴⁸ messages with probability 2⁻⁹⁷ (docs/decisions/0024).
struct SealingKey: Sendable, Redacted {
    /// With its key mixed in already: half the work of a short HMAC.
    private let keyed: HMAC<SHA256>

    static let nonceCount = 24
    /// What a message grows by, beside its header.
    static let overhead = nonceCount + 16

    init(_ key: SymmetricKey) {
        keyed = HMAC(key: key)
    }

    /// `header ‖ nonce (24) ‖ ciphertext ‖ tag (16)`. Header and `aad` are authenticated.
    func seal(_ plaintext: [UInt8], header: [UInt8], aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        do {
            let nonce = randomBytes(Self.nonceCount)
            let box = try AES.GCM.seal(
                plaintext, using: messageKey(nonce), nonce: Self.zero, authenticating: header + aad)
            var sealed: [UInt8] = []
            sealed.reserveCapacity(header.count + plaintext.count + Self.overhead)
            sealed += header
            sealed += nonce
            box.ciphertext.withUnsafeBytes { sealed.append(contentsOf: $0) }
            box.tag.withUnsafeBytes { sealed.append(contentsOf: $0) }
            return sealed
        } catch {
            throw .cannotSeal
        }
    }

    /// Opens what ``seal(_:header:aad:)`` made with a header of `headerCount` bytes.
    func open(_ sealed: [UInt8], headerCount: Int, aad: [UInt8]) throws(KeyringError) -> [UInt8] {
        guard sealed.count >= headerCount + Self.overhead else { throw .cannotOpen }
        let body = headerCount + Self.nonceCount
        // One copy with the zero nonce in front: a box made of parts costs several.
        var combined = [UInt8](repeating: 0, count: 12)
        combined.reserveCapacity(12 + sealed.count - body)
        combined += sealed[body...]
        do {
            let key = messageKey(Array(sealed[headerCount..<body]))
            let box = try AES.GCM.SealedBox(combined: combined)
            return Array(try AES.GCM.open(box, using: key, authenticating: Array(sealed[..<headerCount]) + aad))
        } catch {
            throw .cannotOpen
        }
    }

    private func messageKey(_ nonce: [UInt8]) -> SymmetricKey {
        var mac = keyed
        mac.update(data: nonce)
        return SymmetricKey(data: mac.finalize())
    }

    private static let zero: AES.GCM.Nonce = {
        do {
            return try AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 12))
        } catch {
            preconditionFailure("12 bytes are a nonce")
        }
    }()
}
