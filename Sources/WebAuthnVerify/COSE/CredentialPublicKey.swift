public import Crypto
public import CryptoExtras

/// A credential public key, decoded and ready to verify with.
public struct CredentialPublicKey: Sendable {
    /// `alg` as the key states it; RFC 9864 has two numbers for some algorithms.
    public let algorithm: COSEAlgorithmIdentifier
    /// The key itself.
    public let material: KeyMaterial

    /// Labels of COSE key parameters. −1 means `crv`, `n` or `pub` depending on `kty`: one scope per key type.
    enum Label {
        static let kty: Int64 = 1, alg: Int64 = 3
        enum EC2 { static let crv: Int64 = -1, x: Int64 = -2, y: Int64 = -3 }
        enum OKP { static let crv: Int64 = -1, x: Int64 = -2 }
        enum RSA { static let n: Int64 = -1, e: Int64 = -2 }
        enum AKP { static let pub: Int64 = -1 }
    }

    /// COSE key types (RFC 9053 §7, RFC 8230, RFC 9964).
    enum KeyType: Int64 {
        case okp = 1, ec2 = 2, rsa = 3, akp = 7
    }

    /// COSE elliptic curves (IANA "COSE Elliptic Curves").
    enum Curve: Int64 {
        case p256 = 1, p384 = 2, p521 = 3, ed25519 = 6, ed448 = 7, secp256k1 = 8
    }
}

/// A public key of one algorithm: algorithm, curve and hash are one case and cannot disagree.
public enum KeyMaterial: Sendable {
    /// ES256, ESP256.
    case p256(P256.Signing.PublicKey)
    /// ES384, ESP384.
    case p384(P384.Signing.PublicKey)
    /// ES512, ESP512.
    case p521(P521.Signing.PublicKey)
    /// EdDSA, Ed25519.
    case ed25519(Curve25519.Signing.PublicKey)
    /// Ed448.
    case ed448(OpenSSLPublicKey)
    /// ES256K.
    case secp256k1(OpenSSLPublicKey)
    /// RS256 to RS512, PS256 to PS512.
    case rsa(_RSA.Signing.PublicKey, RSAScheme)
    /// ML-DSA-65.
    case mlDSA65(MLDSA65.PublicKey)
    /// ML-DSA-87.
    case mlDSA87(MLDSA87.PublicKey)

    /// Padding and hash of an RSA signature.
    public struct RSAScheme: Sendable, Equatable {
        /// Padding.
        public enum Padding: Sendable { case pkcs1v1_5, pss }
        /// Hash, also used by MGF1 and as salt length.
        public enum Hash: Sendable { case sha1, sha256, sha384, sha512 }

        /// The padding.
        public var padding: Padding
        /// The hash.
        public var hash: Hash
    }
}
