import Crypto

/// Writes the one COSE key this module makes itself.
enum COSEKey {
    /// A fresh ES256 public key (RFC 9053 §7.1.1) in CTAP2 canonical form; the private half is dropped.
    static func es256() -> [UInt8] {
        let point = Array(P256.Signing.PrivateKey().publicKey.rawRepresentation)
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        return [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[..<32] + [0x22, 0x58, 0x20] + point[32...]
    }
}
