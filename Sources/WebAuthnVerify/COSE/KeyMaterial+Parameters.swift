import Crypto
import CryptoExtras

/// Keys that do not come as COSE: from a JWK, for the package's own use, under the same rules.
extension KeyMaterial {
    /// An RSA key of 2048 to 4096 bits from its big-endian modulus and exponent (RFC 7518 §6.3.1).
    package static func rsa(modulus: [UInt8], exponent: [UInt8], _ scheme: RSAScheme) throws(COSEKeyError)
        -> KeyMaterial
    {
        try RSAParameters.check(modulus: modulus, exponent: exponent)
        do { return .rsa(try .init(n: modulus, e: exponent), scheme) } catch { throw .invalidModulus }
    }

    /// An Ed25519 key from its 32 bytes (RFC 8037 §2).
    package static func ed25519(raw: [UInt8]) throws(COSEKeyError) -> KeyMaterial {
        guard Ed25519Point.isAcceptable(raw) else { throw .invalidPoint }
        do { return .ed25519(try .init(rawRepresentation: raw)) } catch { throw .invalidPoint }
    }
}

extension KeyMaterial.RSAScheme {
    /// RS256 (RFC 7518 §3.3).
    package static let rs256 = Self(padding: .pkcs1v1_5, hash: .sha256)
    /// PS256 (RFC 7518 §3.5).
    package static let ps256 = Self(padding: .pss, hash: .sha256)
}
