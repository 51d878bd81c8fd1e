/// Bounds on RSA public keys: RFC 8230 §6.1 asks for 2048 bits or more, and verification time grows with the square of n.
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

/// Ed25519 public keys that no honest authenticator has (RFC 8032 §5.1.3; low-order points of the twist-secure curve).
enum Ed25519Point {
    /// y-coordinates, little endian, of the points whose order divides 8.
    private static let smallOrder: [[UInt8]] = [
        [UInt8](repeating: 0, count: 32),
        [1] + [UInt8](repeating: 0, count: 31),
        [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
        [
            0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
            0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
        ],
        [
            0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
            0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
        ],
    ]

    /// False for a y-coordinate of 2^255 − 19 or more and for points of small order. Whether a point with this y exists is
    /// not asked here: a key without one verifies nothing.
    static func isAcceptable(_ raw: [UInt8]) -> Bool {
        guard raw.count == 32, let last = raw.last, let first = raw.first else { return false }
        var y = raw
        y[31] = last & 0x7f
        if first >= 0xed, y[31] == 0x7f, y[1..<31].allSatisfy({ $0 == 0xff }) { return false }
        return !smallOrder.contains(y)
    }
}
