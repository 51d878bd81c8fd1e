/// Bounds on RSA public keys: RFC 8230 §6.1 asks for 2048 bits or more, and verification time grows with the square of
/// n.
enum RSAParameters {
    static let modulusBits = 2048...4096
    /// A verifier's work grows with e; nothing in use exceeds 2^32, and the library underneath stops at 33 bits.
    static let maximumExponentBytes = 4

    static func check(modulus: [UInt8], exponent: [UInt8]) throws(COSEKeyError) {
        guard let top = modulus.first, top != 0, let bottom = modulus.last, bottom & 1 == 1 else {
            throw .invalidModulus
        }
        guard modulusBits.contains(modulus.count * 8 - top.leadingZeroBitCount) else { throw .invalidModulus }
        guard let top = exponent.first, top != 0, let bottom = exponent.last, bottom & 1 == 1,
            exponent.count <= maximumExponentBytes, exponent != [1]
        else { throw .invalidExponent }
    }
}
