import Encoding

extension JSONReader {
    /// The position of a string's characters, without the quotes.
    struct StringContent {
        var range: Range<Int>
        var hasEscapes: Bool
    }

    /// The next value, which must be a string.
    @_lifetime(self: copy self)
    package mutating func string() throws(JSONError) -> String {
        try text(try stringValue())
    }

    /// The next value, which must be a string of base64url without padding: its bytes.
    @_lifetime(self: copy self)
    mutating func base64URL() throws(JSONError) -> [UInt8] {
        let content = try stringValue()
        if content.hasEscapes {
            let unescaped = try unescape(content.range)
            guard let decoded = Base64.urlDecode(unescaped.span) else { throw .invalidBase64URL }
            return decoded
        }
        guard let decoded = Base64.urlDecode(input.bytes.extracting(content.range)) else { throw .invalidBase64URL }
        return decoded
    }

    /// Whether the next value is a string.
    package var nextIsString: Bool {
        @_lifetime(self: copy self) mutating get {
            skipWhitespace()
            return input.peek == UInt8(ascii: "\"")
        }
    }

    @_lifetime(self: copy self)
    private mutating func stringValue() throws(JSONError) -> StringContent {
        skipWhitespace()
        guard let first = input.peek else { throw .malformed }
        guard first == UInt8(ascii: "\"") else { throw .unexpectedType }
        _ = input.next()
        return try stringContent()
    }

    /// Passes over a string whose opening quote has been read and checks its escapes.
    @_lifetime(self: copy self)
    mutating func stringContent() throws(JSONError) -> StringContent {
        let start = input.offset
        var hasEscapes = false
        while true {
            input.skip { $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
            guard let byte = input.next() else { throw .malformed }
            switch byte {
            case UInt8(ascii: "\""):
                return StringContent(range: start..<(input.offset - 1), hasEscapes: hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                guard let escaped = input.next() else { throw .malformed }
                switch escaped {
                case UInt8(ascii: "u"):
                    guard let digits = input.take(4), hexadecimal(digits) != nil else { throw .malformed }
                default:
                    guard Self.simpleEscape(escaped) != nil else { throw .malformed }
                }
            default:
                // Control characters are escaped (RFC 8259 §7).
                throw .malformed
            }
        }
    }

    func text(_ content: StringContent) throws(JSONError) -> String {
        if content.hasEscapes { return String(decoding: try unescape(content.range), as: UTF8.self) }
        do {
            return String(copying: try UTF8Span(validating: input.bytes.extracting(content.range)))
        } catch {
            throw .invalidUTF8
        }
    }

    /// Replaces escapes by the characters they denote; `range` has passed ``stringContent()``.
    private func unescape(_ range: Range<Int>) throws(JSONError) -> [UInt8] {
        var reader = JSONReader(validated: input.bytes.extracting(range))
        var result: [UInt8] = []
        while let byte = reader.input.next() {
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                continue
            }
            guard let escaped = reader.input.next() else { throw .malformed }
            if let plain = Self.simpleEscape(escaped) {
                result.append(plain)
            } else {
                result.append(contentsOf: Array(String(try reader.scalar()).utf8))
            }
        }
        return result
    }

    /// The scalar of a `\u` escape whose `u` has been read, with its second half if it is a surrogate.
    @_lifetime(self: copy self)
    private mutating func scalar() throws(JSONError) -> Unicode.Scalar {
        guard let digits = input.take(4), let unit = hexadecimal(digits) else { throw .malformed }
        if let scalar = Unicode.Scalar(unit) { return scalar }
        // Only surrogates are not scalars. A low one must not come first, and a high one must be followed by a low one.
        guard unit < 0xdc00, input.next() == UInt8(ascii: "\\"), input.next() == UInt8(ascii: "u"),
            let digits = input.take(4), let low = hexadecimal(digits), (0xdc00...0xdfff).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (unit - 0xd800) << 10 + (low - 0xdc00))
        else { throw .malformed }
        return scalar
    }

    private func hexadecimal(_ range: Range<Int>) -> UInt32? {
        var value: UInt32 = 0
        for index in range {
            let byte = input.bytes[index]
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(byte - UInt8(ascii: "a") + 10)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt32(byte - UInt8(ascii: "A") + 10)
            default: return nil
            }
        }
        return value
    }

    private static func simpleEscape(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0c
        case UInt8(ascii: "n"): 0x0a
        case UInt8(ascii: "r"): 0x0d
        case UInt8(ascii: "t"): 0x09
        default: nil
        }
    }
}
