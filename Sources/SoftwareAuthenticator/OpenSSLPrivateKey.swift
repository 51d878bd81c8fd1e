internal import COpenSSL

/// A private key on one of the curves only libcrypto has, kept as PKCS #8 DER.
public struct OpenSSLPrivateKey: Sendable {
    /// The curves.
    public enum Curve: Sendable { case ed448, secp256k1 }

    /// The curve.
    public let curve: Curve
    /// 57 bytes for Ed448, 04 ‖ x ‖ y for secp256k1.
    public let rawPublicKey: [UInt8]
    private let der: [UInt8]

    /// A new key.
    public init(_ curve: Curve) throws {
        guard let context = EVP_PKEY_CTX_new_id(curve == .ed448 ? EVP_PKEY_ED448 : EVP_PKEY_EC, nil) else {
            throw SoftwareAuthenticatorError.openSSL
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            curve == .ed448 || EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_secp256k1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw SoftwareAuthenticatorError.openSSL }
        defer { EVP_PKEY_free(key) }
        self.curve = curve
        rawPublicKey = Array(Self.output { i2d_PUBKEY(key, $0) }.suffix(curve == .ed448 ? 57 : 65))
        der = Self.output { i2d_PrivateKey(key, $0) }
    }

    /// A signature: Ed448 raw, secp256k1 with SHA-256 as DER.
    public func sign(_ message: [UInt8]) throws -> [UInt8] {
        let key: OpaquePointer? = der.withUnsafeBufferPointer { (buffer) in
            var cursor = buffer.baseAddress
            return d2i_AutoPrivateKey(nil, &cursor, buffer.count)
        }
        guard let key, let context = EVP_MD_CTX_new() else { throw SoftwareAuthenticatorError.openSSL }
        defer {
            EVP_MD_CTX_free(context)
            EVP_PKEY_free(key)
        }
        var signature = [UInt8](repeating: 0, count: 256)
        var length = signature.count
        guard EVP_DigestSignInit(context, nil, curve == .ed448 ? nil : EVP_sha256(), nil, key) == 1,
            EVP_DigestSign(context, &signature, &length, message, message.count) == 1
        else { throw SoftwareAuthenticatorError.openSSL }
        return Array(signature.prefix(length))
    }

    /// What one of the `i2d` functions writes.
    private static func output(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
        let length = Int(write(nil))
        guard length > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: length) { (buffer, initialized) in
            var cursor = buffer.baseAddress
            initialized = max(0, Int(write(&cursor)))
        }
    }
}
