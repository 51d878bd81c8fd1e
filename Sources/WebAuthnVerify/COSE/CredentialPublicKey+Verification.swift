import Crypto
import CryptoExtras

extension CredentialPublicKey {
    /// True if `signature` is this key's over `message`. See ``KeyMaterial/isValidSignature(_:for:)``.
    public func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
        material.isValidSignature(signature, for: message)
    }
}

extension KeyMaterial {
    /// True if `signature` is this key's over `message`, in the form WebAuthn gives signatures (L3 §6.5.5): ECDSA as
    /// DER `SEQUENCE { r, s }`, EdDSA, RSA and ML-DSA as raw bytes. ML-DSA is pure, with empty context (RFC 9964).
    ///
    /// A signature that cannot be parsed is simply not valid; high-S ECDSA signatures are valid.
    public func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
        switch self {
        case .p256(let key):
            guard let parsed = try? P256.Signing.ECDSASignature(derRepresentation: signature) else { return false }
            return key.isValidSignature(parsed, for: SHA256.hash(data: message))
        case .p384(let key):
            guard let parsed = try? P384.Signing.ECDSASignature(derRepresentation: signature) else { return false }
            return key.isValidSignature(parsed, for: SHA384.hash(data: message))
        case .p521(let key):
            guard let parsed = try? P521.Signing.ECDSASignature(derRepresentation: signature) else { return false }
            return key.isValidSignature(parsed, for: SHA512.hash(data: message))
        case .ed25519(let key):
            return signature.count == 64 && key.isValidSignature(signature, for: message)
        case .ed448(let key), .secp256k1(let key):
            return key.isValidSignature(signature, for: message)
        case .rsa(let key, let scheme):
            return scheme.isValidSignature(signature, by: key, for: message)
        case .mlDSA65(let key):
            return key.isValidSignature(signature, for: message)
        case .mlDSA87(let key):
            return key.isValidSignature(signature, for: message)
        }
    }
}

extension KeyMaterial.RSAScheme {
    /// The scheme that an RSA algorithm number denotes; nil for every other number.
    init?(_ alg: COSEAlgorithmIdentifier) {
        switch alg {
        case .rs1: self.init(padding: .pkcs1v1_5, hash: .sha1)
        case .rs256: self.init(padding: .pkcs1v1_5, hash: .sha256)
        case .rs384: self.init(padding: .pkcs1v1_5, hash: .sha384)
        case .rs512: self.init(padding: .pkcs1v1_5, hash: .sha512)
        case .ps256: self.init(padding: .pss, hash: .sha256)
        case .ps384: self.init(padding: .pss, hash: .sha384)
        case .ps512: self.init(padding: .pss, hash: .sha512)
        default: return nil
        }
    }

    func isValidSignature(_ signature: [UInt8], by key: _RSA.Signing.PublicKey, for message: [UInt8]) -> Bool {
        // RFC 8017 §8.1.2 and §8.2.2, step 1: the signature is exactly as long as the modulus.
        guard signature.count == (key.keySizeInBits + 7) / 8 else { return false }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: signature)
        let padding: _RSA.Signing.Padding = padding == .pss ? .PSS : .insecurePKCS1v1_5
        return switch hash {
        case .sha1: key.isValidSignature(signature, for: Insecure.SHA1.hash(data: message), padding: padding)
        case .sha256: key.isValidSignature(signature, for: SHA256.hash(data: message), padding: padding)
        case .sha384: key.isValidSignature(signature, for: SHA384.hash(data: message), padding: padding)
        case .sha512: key.isValidSignature(signature, for: SHA512.hash(data: message), padding: padding)
        }
    }
}
