/// Base64url without padding (RFC 4648 §5), the one encoding WebAuthn has in JSON.
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// 0…63 for a character of the alphabet, 0xff for every other byte.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xff, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// The bytes `text` stands for; nil for padding, any other alphabet, or unused bits that are not zero.
    public static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        let values = values
        var result: [UInt8] = []
        result.reserveCapacity(text.count * 3 / 4)
        var accumulator: UInt32 = 0
        var bits = 0
        var invalid: UInt8 = 0
        for index in text.indices {
            let value = values[Int(text[index])]
            invalid |= value
            accumulator = accumulator << 6 | UInt32(value & 0x3f)
            bits += 6
            if bits >= 8 {
                bits -= 8
                result.append(UInt8(truncatingIfNeeded: accumulator >> UInt32(bits)))
            }
        }
        guard invalid & 0xc0 == 0, accumulator & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return result
    }

    /// The bytes `text` stands for; nil for everything ``decode(_:)-(Span<UInt8>)`` refuses.
    public static func decode(_ text: String) -> [UInt8]? {
        decode(Array(text.utf8))
    }

    static func decode(_ text: [UInt8]) -> [UInt8]? {
        decode(text.span)
    }

    /// `bytes` in base64url without padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        String(decoding: encodeToBytes(bytes), as: UTF8.self)
    }

    static func encodeToBytes(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = alphabet
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 4 + 2) / 3)
        var accumulator: UInt32 = 0
        var bits: UInt32 = 0
        for byte in bytes {
            accumulator = accumulator << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(accumulator >> bits & 0x3f)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(accumulator << (6 - bits) & 0x3f)]) }
        return text
    }
}
