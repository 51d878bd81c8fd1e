/// Strict base64 (RFC 4648): canonical trailing bits, no white space, padding exactly as the alphabet's rule says.
///
/// Strictness is what makes tokens non-malleable: one byte sequence has one text.
public enum Base64 {
    /// Encodes as base64url without padding (RFC 4648 §5).
    @inlinable
    public static func urlEncode(_ bytes: some Collection<UInt8>) -> String {
        bytes.withContiguousStorageIfAvailable { urlEncode(buffer: $0) }
            ?? Array(bytes).withUnsafeBufferPointer { urlEncode(buffer: $0) }
    }

    @usableFromInline
    static func urlEncode(buffer bytes: UnsafeBufferPointer<UInt8>) -> String {
        urlAlphabet.withUnsafeBufferPointer { alphabet in
            String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { buffer in
                var input = 0, output = 0
                while input + 3 <= bytes.count {
                    let group = UInt32(bytes[input]) << 16 | UInt32(bytes[input + 1]) << 8 | UInt32(bytes[input + 2])
                    buffer[output] = alphabet[Int(group >> 18)]
                    buffer[output + 1] = alphabet[Int(group >> 12 & 63)]
                    buffer[output + 2] = alphabet[Int(group >> 6 & 63)]
                    buffer[output + 3] = alphabet[Int(group & 63)]
                    input += 3
                    output += 4
                }
                let left = bytes.count - input
                if left > 0 {
                    let group = UInt32(bytes[input]) << 16 | (left == 2 ? UInt32(bytes[input + 1]) << 8 : 0)
                    for place in 0...left {
                        buffer[output] = alphabet[Int(group >> UInt32(18 - 6 * place) & 63)]
                        output += 1
                    }
                }
                return output
            }
        }
    }

    /// Encodes as padded base64 (RFC 4648 §4).
    public static func encode(_ bytes: some Collection<UInt8>) -> String {
        let text = urlEncode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    /// Decodes base64url without padding (RFC 4648 §5); `nil` for anything else.
    @inlinable
    public static func urlDecode(_ text: some StringProtocol) -> [UInt8]? {
        urlDecode(Array(text.utf8))
    }

    /// Decodes base64url without padding (RFC 4648 §5); `nil` for anything else.
    public static func urlDecode(_ utf8: Span<UInt8>) -> [UInt8]? {
        decode(utf8, with: urlValues)
    }

    /// Decodes base64url without padding (RFC 4648 §5); `nil` for anything else.
    public static func urlDecode(_ utf8: [UInt8]) -> [UInt8]? {
        urlDecode(utf8.span)
    }

    /// Decodes padded base64 (RFC 4648 §4); `nil` for anything else.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count % 4 == 0 else { return nil }
        let padding = utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        return decode(utf8.span.extracting(droppingLast: padding), with: standardValues)
    }

    private static func decode(_ utf8: Span<UInt8>, with values: [UInt8]) -> [UInt8]? {
        let tail = utf8.count % 4
        guard tail != 1 else { return nil }
        var result = [UInt8](repeating: 0, count: utf8.count * 3 / 4)
        // A byte outside the alphabet sets the two high bits, which are checked once, at the end.
        var seen: UInt8 = 0
        var input = 0, output = 0
        while input + 4 <= utf8.count {
            let a = values[Int(utf8[input])], b = values[Int(utf8[input + 1])]
            let c = values[Int(utf8[input + 2])], d = values[Int(utf8[input + 3])]
            seen |= a | b | c | d
            result[output] = a << 2 | b >> 4
            result[output + 1] = b << 4 | c >> 2
            result[output + 2] = c << 6 | d
            input += 4
            output += 3
        }
        if tail > 0 {
            let a = values[Int(utf8[input])], b = values[Int(utf8[input + 1])]
            let c = tail == 3 ? values[Int(utf8[input + 2])] : 0
            seen |= a | b | c
            result[output] = a << 2 | b >> 4
            if tail == 3 { result[output + 1] = b << 4 | c >> 2 }
            // RFC 4648 §3.5: unused bits are zero.
            guard tail == 3 ? c & 0x03 == 0 : b & 0x0f == 0 else { return nil }
        }
        return seen & 0xc0 == 0 ? result : nil
    }

    private static let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let urlValues = inverse(urlAlphabet)
    private static let standardValues = inverse(
        Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8))

    /// 0…63 for a character of the alphabet, 255 for every other byte.
    private static func inverse(_ alphabet: [UInt8]) -> [UInt8] {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, character) in alphabet.enumerated() {
            values[Int(character)] = UInt8(value)
        }
        return values
    }
}
