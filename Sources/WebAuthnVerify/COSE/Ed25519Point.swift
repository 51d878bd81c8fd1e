internal import COpenSSL

/// Ed25519 public keys that no honest authenticator has (RFC 8032 §5.1.3).
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

    /// False for a y-coordinate of 2^255 − 19 or more and for points of small order. Cheap enough for every sign-in.
    static func isAcceptable(_ raw: [UInt8]) -> Bool {
        guard raw.count == 32, let last = raw.last, let first = raw.first else { return false }
        var y = raw
        y[31] = last & 0x7f
        if first >= 0xed, y[31] == 0x7f, y[1..<31].allSatisfy({ $0 == 0xff }) { return false }
        return !smallOrder.contains(y)
    }

    /// p = 2^255 − 19 and d of the curve −x² + y² = 1 + d x² y² (RFC 8032 §5.1), little endian.
    private static let p: [UInt8] = [0xed] + [UInt8](repeating: 0xff, count: 30) + [0x7f]
    private static let d: [UInt8] = [
        0xa3, 0x78, 0x59, 0x13, 0xca, 0x4d, 0xeb, 0x75, 0xab, 0xd8, 0x41, 0x41, 0x4d, 0x0a, 0x70, 0x00,
        0x98, 0xe8, 0x79, 0x77, 0x79, 0x40, 0xc7, 0x8c, 0x73, 0xfe, 0x6f, 0x2b, 0xee, 0x6c, 0x03, 0x52,
    ]

    /// True if the curve has a point with this y: x² = (y² − 1) / (d y² + 1) must be a square, which numerator times
    /// denominator then is as well. Asked once, at registration: a key without a point verifies nothing.
    static func exists(_ raw: [UInt8]) -> Bool {
        guard raw.count == 32, let last = raw.last, let context = unsafe BN_CTX_new() else { return false }
        defer { unsafe BN_CTX_free(context) }
        let magnitude = raw.dropLast() + [last & 0x7f]
        guard let y = unsafe BN_lebin2bn(Array(magnitude), 32, nil) else { return false }
        defer { unsafe BN_free(y) }
        guard let p = unsafe BN_lebin2bn(Self.p, 32, nil) else { return false }
        defer { unsafe BN_free(p) }
        guard let d = unsafe BN_lebin2bn(Self.d, 32, nil) else { return false }
        defer { unsafe BN_free(d) }
        guard unsafe BN_mod_sqr(y, y, p, context) == 1, unsafe BN_mod_mul(d, d, y, p, context) == 1,
            unsafe BN_add_word(d, 1) == 1, unsafe BN_add(y, y, p) == 1, unsafe BN_sub_word(y, 1) == 1,
            unsafe BN_mod_mul(y, y, d, p, context) == 1
        else { return false }
        return unsafe BN_kronecker(y, p, context) == 1
    }
}
