/// Base32 (RFC 4648 §6) without padding, as `otpauth` URIs and authenticator apps have it.
public enum Base32 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

    /// With the alphabet of RFC 4648 §6.
    public static func encode(_ bytes: [UInt8]) -> String {
        encode(bytes, alphabet: alphabet)
    }

    /// Five bits a character, the last one filled up with zeros.
    /// - Parameter alphabet: 32 ASCII characters.
    public static func encode(_ bytes: [UInt8], alphabet: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 8 + 4) / 5)
        var accumulator: UInt32 = 0
        var bits = 0
        for byte in bytes {
            accumulator = accumulator << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int(accumulator >> UInt32(bits)) & 31])
            }
        }
        if bits > 0 { text.append(alphabet[Int(accumulator << UInt32(5 - bits)) & 31]) }
        return String(decoding: text, as: UTF8.self)
    }
}
