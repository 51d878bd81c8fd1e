internal import COpenSSL

/// An RSA key made and used by libcrypto, which signs with RS256 more than twice as fast as swift-crypto
/// (docs/decisions/0000, F12).
///
/// `@unchecked Sendable`: the `EVP_PKEY` is never changed after the initialiser; every signature has a context of its
/// own, and libcrypto locks what it caches inside a key.
final class RSAPrivateKey: @unchecked Sendable {
    private let key: OpaquePointer

    /// 2048 bits: accepted everywhere, above 112 bits of strength, and keys are easily rotated.
    static let bits: Int32 = 2048

    /// libcrypto could not make the key or the signature.
    struct Failure: Error {}

    /// A new key; takes some tenths of a second, so not on a thread of Swift concurrency.
    init() throws(Failure) {
        defer { ERR_clear_error() }
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nil) else { throw Failure() }
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, Self.bits) == 1,
            EVP_PKEY_keygen(context, &made) == 1, let made
        else { throw Failure() }
        key = made
    }

    /// Reads PKCS #1 or PKCS #8 DER.
    init(der: [UInt8]) throws(Failure) {
        defer { ERR_clear_error() }
        let read = der.withUnsafeBufferPointer { (buffer) -> OpaquePointer? in
            var cursor = buffer.baseAddress
            return d2i_AutoPrivateKey(nil, &cursor, buffer.count)
        }
        guard let read else { throw Failure() }
        guard EVP_PKEY_get_base_id(read) == EVP_PKEY_RSA else {
            EVP_PKEY_free(read)
            throw Failure()
        }
        key = read
    }

    deinit { EVP_PKEY_free(key) }

    /// The key as DER, to be sealed.
    var der: [UInt8] {
        let length = Int(i2d_PrivateKey(key, nil))
        guard length > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: length) { (buffer, initialized) in
            var cursor = buffer.baseAddress
            initialized = max(0, Int(i2d_PrivateKey(key, &cursor)))
        }
    }

    /// `n`, big endian without leading zeros.
    var modulus: [UInt8] { number("n") }
    /// `e`, big endian without leading zeros.
    var exponent: [UInt8] { number("e") }

    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 §3.3).
    func signature(for message: [UInt8]) throws(Failure) -> [UInt8] {
        defer { ERR_clear_error() }
        guard let context = EVP_MD_CTX_new() else { throw Failure() }
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: 512)
        var length = signature.count
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &signature, &length, message, message.count) == 1
        else { throw Failure() }
        return Array(signature.prefix(length))
    }

    private func number(_ name: String) -> [UInt8] {
        var value: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, name, &value) == 1, let value else { return [] }
        defer { BN_free(value) }
        var bytes = [UInt8](repeating: 0, count: Int((BN_num_bits(value) + 7) / 8))
        BN_bn2bin(value, &bytes)
        return bytes
    }
}
