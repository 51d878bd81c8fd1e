/// Strict base64 (RFC 4648): canonical trailing bits, no white space, padding exactly as the alphabet's rule says.
///
/// Strictness is what makes tokens non-malleable: one byte sequence has one text.
public enum Base64 {
    /// Encodes as base64url without padding (RFC 4648 §5).
    public static func urlEncode(_ bytes: some Collection<UInt8>) -> String {
        let length = (bytes.count * 4 + 2) / 3
        let urlAlphabet = urlAlphabet  // looked up once
        return String(unsafeUninitializedCapacity: length) { buffer in
            var written = 0
            var accumulator: UInt32 = 0
            var bits = 0
            for byte in bytes {
                accumulator = accumulator << 8 | UInt32(byte)
                bits += 8
                while bits >= 6 {
                    bits -= 6
                    buffer[written] = urlAlphabet[Int(accumulator >> UInt32(bits)) & 63]
                    written += 1
                }
            }
            if bits > 0 {
                buffer[written] = urlAlphabet[Int(accumulator << UInt32(6 - bits)) & 63]
                written += 1
            }
            return written
        }
    }

    /// Decodes base64url without padding (RFC 4648 §5); `nil` for anything else.
    public static func urlDecode(_ text: some StringProtocol) -> [UInt8]? {
        decode(utf8: text.utf8, with: urlValues)
    }

    /// Decodes padded base64 (RFC 4648 §4); `nil` for anything else.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count % 4 == 0 else { return nil }
        let padding = utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        return decode(utf8: utf8.dropLast(padding), with: standardValues)
    }

    private static func decode(utf8: some Collection<UInt8>, with values: [UInt8]) -> [UInt8]? {
        let count = utf8.count
        guard count % 4 != 1 else { return nil }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(count * 3 / 4)
        var accumulator: UInt32 = 0
        var bits = 0
        for character in utf8 {
            let value = values[Int(character)]
            guard value < 64 else { return nil }
            accumulator = accumulator << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                decoded.append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
            }
        }
        guard accumulator & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
        return decoded
    }

    private static let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let urlValues = inverse(urlAlphabet)
    private static let standardValues = inverse(
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8))

    private static func inverse(_ alphabet: [UInt8]) -> [UInt8] {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() {
            values[Int(character)] = UInt8(value)
        }
        return values
    }
}

/// Compares without an early exit; lengths are not secret.
func constantTimeEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) {
        difference |= a ^ b
    }
    return difference == 0
}

/// Big-endian bytes of a fixed-width integer.
package func bigEndianBytes<Integer: FixedWidthInteger>(_ value: Integer) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

extension Collection<UInt8> {
    /// Reads the whole collection as one big-endian integer; `nil` when it is too long.
    package func bigEndianInteger<Integer: FixedWidthInteger & UnsignedInteger>(as type: Integer.Type) -> Integer? {
        guard count <= Integer.bitWidth / 8 else { return nil }
        return reduce(Integer(0)) { $0 << 8 | Integer($1) }
    }
}
