internal import COpenSSL

/// A public key verified by libcrypto: the curves swift-crypto does not have (Ed448, secp256k1).
///
/// The value holds only the DER `SubjectPublicKeyInfo`; libcrypto's own object lives for one call, so the value can be
/// shared between threads without a lock.
public struct OpenSSLPublicKey: Sendable, Equatable {
    /// DER `SubjectPublicKeyInfo` (RFC 5280 §4.1.2.7).
    public let subjectPublicKeyInfo: [UInt8]
    private let digest: Digest

    private enum Digest: Sendable { case sha256, none }

    /// A secp256k1 key from 04 ‖ x ‖ y; nil unless the point is on the curve.
    init?(secp256k1Point point: [UInt8]) {
        guard point.count == 65 else { return nil }
        // SEQUENCE { SEQUENCE { id-ecPublicKey, secp256k1 }, BIT STRING } (RFC 5480 §2)
        subjectPublicKeyInfo =
            [
                0x30, 0x56, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
                0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a, 0x03, 0x42, 0x00,
            ] + point
        digest = .sha256
        guard isReadable else { return nil }
    }

    /// An Ed448 key from its 57-byte encoding (RFC 8032 §5.2.2).
    init?(ed448 raw: [UInt8]) {
        guard raw.count == 57 else { return nil }
        // SEQUENCE { SEQUENCE { id-Ed448 }, BIT STRING } (RFC 8410 §4)
        subjectPublicKeyInfo = [0x30, 0x43, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x71, 0x03, 0x3a, 0x00] + raw
        digest = .none
        guard isReadable else { return nil }
    }

    /// True if `signature` is this key's over `message`. ECDSA signatures are DER, re-encoded and compared by
    /// libcrypto.
    func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
        unsafe withKey { (key) in
            guard let context = unsafe EVP_MD_CTX_new() else { return false }
            defer { unsafe EVP_MD_CTX_free(context) }
            let hash = unsafe digest == .sha256 ? EVP_sha256() : nil
            guard unsafe EVP_DigestVerifyInit(context, nil, hash, nil, key) == 1 else { return false }
            return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        }
    }

    private var isReadable: Bool { unsafe withKey { _ in true } }

    /// Parses the key, which includes the check that an EC point is on its curve, and lends it to `body`.
    private func withKey(_ body: (OpaquePointer) -> Bool) -> Bool {
        // Failures leave entries in this thread's error queue; a later caller must not find ours.
        defer { ERR_clear_error() }
        return unsafe subjectPublicKeyInfo.withUnsafeBufferPointer { (buffer) in
            var cursor = buffer.baseAddress
            guard let key = unsafe d2i_PUBKEY(nil, &cursor, buffer.count) else { return false }
            defer { unsafe EVP_PKEY_free(key) }
            return unsafe body(key)
        }
    }
}
