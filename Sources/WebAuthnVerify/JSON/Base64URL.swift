/// Base64url without padding (RFC 4648 §5), the one encoding WebAuthn has in JSON.
public enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// 0…63 for a character of the alphabet, 0xff for every other byte.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xff, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// The bytes `text` encodes; nil for padding, any other alphabet, or unused bits that are not zero.
    public static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        let tail = text.count % 4
        guard tail != 1 else { return nil }
        let values = values
        var result = [UInt8](repeating: 0, count: text.count * 3 / 4)
        // A byte outside the alphabet sets the two high bits, which are checked once, at the end.
        var seen: UInt8 = 0
        var input = 0, output = 0
        while input + 4 <= text.count {
            let a = values[Int(text[input])], b = values[Int(text[input + 1])]
            let c = values[Int(text[input + 2])], d = values[Int(text[input + 3])]
            seen |= a | b | c | d
            result[output] = a << 2 | b >> 4
            result[output + 1] = b << 4 | c >> 2
            result[output + 2] = c << 6 | d
            input += 4
            output += 3
        }
        if tail > 0 {
            let a = values[Int(text[input])], b = values[Int(text[input + 1])]
            let c = tail == 3 ? values[Int(text[input + 2])] : 0
            seen |= a | b | c
            result[output] = a << 2 | b >> 4
            if tail == 3 { result[output + 1] = b << 4 | c >> 2 }
            // RFC 4648 §3.5: unused bits are zero.
            guard tail == 3 ? c & 0x03 == 0 : b & 0x0f == 0 else { return nil }
        }
        return seen & 0xc0 == 0 ? result : nil
    }

    /// The bytes `text` encodes; nil for everything ``decode(_:)-(Span<UInt8>)`` refuses.
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
