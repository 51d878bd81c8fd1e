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
            for index in utf8.indices {
                guard let replacement = replacement(for: utf8[index]) else { continue }
                bytes.append(contentsOf: utf8[start..<index])
                replacement.withUTF8Buffer { bytes.append(contentsOf: $0) }
                start = index + 1
            }
            bytes.append(contentsOf: utf8[start...])
        }
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
