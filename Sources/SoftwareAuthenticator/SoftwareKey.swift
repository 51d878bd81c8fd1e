public import Crypto
public import CryptoExtras
public import WebAuthnVerify

/// The private key of a software credential, for every algorithm the verifier knows.
public enum SoftwareKey: Sendable {
    /// ES256.
    case p256(P256.Signing.PrivateKey)
    /// ES384.
    case p384(P384.Signing.PrivateKey)
    /// ES512.
    case p521(P521.Signing.PrivateKey)
    /// EdDSA with Ed25519.
    case ed25519(Curve25519.Signing.PrivateKey)
    /// RSA of any padding and hash.
    case rsa(_RSA.Signing.PrivateKey, COSEAlgorithmIdentifier)
    /// ML-DSA-65.
    case mlDSA65(MLDSA65.PrivateKey)
    /// ML-DSA-87.
    case mlDSA87(MLDSA87.PrivateKey)
    /// Ed448 or ES256K.
    case openSSL(OpenSSLPrivateKey)

    /// A new key for `alg`; the RFC 9864 identifiers make the same keys as the older ones.
    public init(_ alg: COSEAlgorithmIdentifier) throws {
        switch alg {
        case .es256, .esp256: self = .p256(P256.Signing.PrivateKey())
        case .es384, .esp384: self = .p384(P384.Signing.PrivateKey())
        case .es512, .esp512: self = .p521(P521.Signing.PrivateKey())
        case .edDSA, .ed25519: self = .ed25519(Curve25519.Signing.PrivateKey())
        case .rs1, .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
            self = .rsa(try _RSA.Signing.PrivateKey(keySize: .bits2048), alg)
        case .mlDSA65: self = .mlDSA65(try MLDSA65.PrivateKey())
        case .mlDSA87: self = .mlDSA87(try MLDSA87.PrivateKey())
        case .ed448: self = .openSSL(try OpenSSLPrivateKey(.ed448))
        case .es256K: self = .openSSL(try OpenSSLPrivateKey(.secp256k1))
        default: throw SoftwareAuthenticatorError.unsupportedAlgorithm
        }
    }

    /// The public key as a COSE key with `alg` as stated.
    public func coseKey(_ alg: COSEAlgorithmIdentifier) throws -> [UInt8] {
        switch self {
        case .p256(let key): Self.ec2(alg, crv: 1, Array(key.publicKey.rawRepresentation))
        case .p384(let key): Self.ec2(alg, crv: 2, Array(key.publicKey.rawRepresentation))
        case .p521(let key): Self.ec2(alg, crv: 3, Array(key.publicKey.rawRepresentation))
        case .ed25519(let key): Self.okp(alg, crv: 6, Array(key.publicKey.rawRepresentation))
        case .mlDSA65(let key): Self.akp(alg, Array(key.publicKey.rawRepresentation))
        case .mlDSA87(let key): Self.akp(alg, Array(key.publicKey.rawRepresentation))
        case .openSSL(let key):
            switch key.curve {
            case .ed448: Self.okp(alg, crv: 7, key.rawPublicKey)
            case .secp256k1: Self.ec2(alg, crv: 8, Array(key.rawPublicKey.dropFirst()))
            }
        case .rsa(let key, _):
            try Self.rsa(alg, key.publicKey)
        }
    }

    /// A signature in the form WebAuthn gives it.
    public func sign(_ message: [UInt8]) throws -> [UInt8] {
        switch self {
        case .p256(let key): Array(try key.signature(for: message).derRepresentation)
        case .p384(let key): Array(try key.signature(for: message).derRepresentation)
        case .p521(let key): Array(try key.signature(for: message).derRepresentation)
        case .ed25519(let key): Array(try key.signature(for: message))
        case .mlDSA65(let key): Array(try key.signature(for: message))
        case .mlDSA87(let key): Array(try key.signature(for: message))
        case .openSSL(let key): try key.sign(message)
        case .rsa(let key, let alg):
            switch alg {
            case .rs1:
                Array(
                    try key.signature(for: Insecure.SHA1.hash(data: message), padding: .insecurePKCS1v1_5)
                        .rawRepresentation)
            case .rs256:
                Array(try key.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation)
            case .rs384:
                Array(try key.signature(for: SHA384.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation)
            case .rs512:
                Array(try key.signature(for: SHA512.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation)
            case .ps384: Array(try key.signature(for: SHA384.hash(data: message), padding: .PSS).rawRepresentation)
            case .ps512: Array(try key.signature(for: SHA512.hash(data: message), padding: .PSS).rawRepresentation)
            default: Array(try key.signature(for: SHA256.hash(data: message), padding: .PSS).rawRepresentation)
            }
        }
    }

    private static func ec2(_ alg: COSEAlgorithmIdentifier, crv: Int64, _ point: [UInt8]) -> [UInt8] {
        let half = point.count / 2
        return CBORValue.map([
            (.integer(1), .integer(2)), (.integer(3), .integer(alg.rawValue)), (.integer(-1), .integer(crv)),
            (.integer(-2), .bytes(Array(point.prefix(half)))), (.integer(-3), .bytes(Array(point.suffix(half)))),
        ])
    }

    private static func okp(_ alg: COSEAlgorithmIdentifier, crv: Int64, _ x: [UInt8]) -> [UInt8] {
        CBORValue.map([
            (.integer(1), .integer(1)), (.integer(3), .integer(alg.rawValue)), (.integer(-1), .integer(crv)),
            (.integer(-2), .bytes(x)),
        ])
    }

    private static func akp(_ alg: COSEAlgorithmIdentifier, _ pub: [UInt8]) -> [UInt8] {
        CBORValue.map([
            (.integer(1), .integer(7)), (.integer(3), .integer(alg.rawValue)), (.integer(-1), .bytes(pub)),
        ])
    }

    private static func rsa(_ alg: COSEAlgorithmIdentifier, _ key: _RSA.Signing.PublicKey) throws -> [UInt8] {
        let primitives = try key.getKeyPrimitives()
        return CBORValue.map([
            (.integer(1), .integer(3)), (.integer(3), .integer(alg.rawValue)),
            (.integer(-1), .bytes(Array(primitives.modulus))), (.integer(-2), .bytes(Array(primitives.publicExponent))),
        ])
    }
}

/// What can go wrong while an authenticator in software is asked for something.
public enum SoftwareAuthenticatorError: Error {
    /// No key of this algorithm can be made.
    case unsupportedAlgorithm
    /// The format cannot be made with a key of this algorithm.
    case unsupportedFormat
    /// libcrypto refused.
    case openSSL
}
