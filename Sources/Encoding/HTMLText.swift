/// Text on its way into HTML.
public enum HTMLText {
    /// Safe as text and inside a quoted attribute. By scalar: a combining mark after it must not hide a `<` or a quote.
    public static func escape(_ text: String) -> String {
        // Most texts need nothing; and none of the five is part of the UTF-8 of another scalar.
        guard text.utf8.contains(where: { replacement(for: $0) != nil }) else { return text }
        var escaped: [UInt8] = []
        escaped.reserveCapacity(text.utf8.count + 64)
        append(text, to: &escaped)
        return String(decoding: escaped, as: UTF8.self)
    }

    /// The same behind what there is.
    public static func append(_ text: String, to bytes: inout [UInt8]) {
        var text = text
        text.withUTF8 { utf8 in
            // What needs no replacement is copied at once: the longest texts of a page are base64.
            var start = 0
            var index = 0
            while index < utf8.count {
                if index + 8 <= utf8.count, isPlain(UnsafeRawBufferPointer(utf8), at: index) {
                    index += 8
                    continue
                }
                if let replacement = replacement(for: utf8[index]) {
                    bytes.append(contentsOf: utf8[start..<index])
                    replacement.withUTF8Buffer { bytes.append(contentsOf: $0) }
                    start = index + 1
                }
                index += 1
            }
            bytes.append(contentsOf: utf8[start...])
        }
    }

    /// Whether 8 bytes need no replacement; `#` counts as one that does.
    @inline(__always)
    private static func isPlain(_ utf8: UnsafeRawBufferPointer, at index: Int) -> Bool {
        let block = utf8.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        // `"`, `&` and `'` differ from `'` in these bits alone, `<` from `>` in this one.
        let quotes = (block | ones * 0x05) ^ ones * UInt64(UInt8(ascii: "'"))
        let brackets = (block | ones * 0x02) ^ ones * UInt64(UInt8(ascii: ">"))
        // The highest bit of a byte that is zero.
        let found = (quotes &- ones) & ~quotes | (brackets &- ones) & ~brackets
        return found & (ones * 0x80) == 0
    }

    @inline(__always)
    private static func replacement(for byte: UInt8) -> StaticString? {
        // All five lie below the letters.
        guard byte <= UInt8(ascii: ">") else { return nil }
        return switch byte {
        case UInt8(ascii: "&"): "&amp;"
        case UInt8(ascii: "<"): "&lt;"
        case UInt8(ascii: ">"): "&gt;"
        case UInt8(ascii: "\""): "&quot;"
        case UInt8(ascii: "'"): "&#39;"
        default: nil
        }
    }
}
