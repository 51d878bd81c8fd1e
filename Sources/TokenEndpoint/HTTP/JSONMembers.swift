import HTTPTypes
import NIOCore

/// The members of a JSON request body: names read case-insensitively, a name given twice refused (contract §4, TE-31, TE-33).
///
/// A small reader of our own: Foundation's keeps the last of two equal names and says nothing.
struct JSONMembers: Sendable {
    /// Why a body was refused.
    enum ParseError: Error, Equatable {
        case malformed
        case repeatedName
        case tooDeep
    }

    private enum Value: Sendable {
        case string(String)
        case null
        /// The bytes of an object.
        case object(ArraySlice<UInt8>)
        case other
    }

    private var values: [String: Value] = [:]

    /// The deepest nesting read; unknown members may nest, known ones are strings.
    private static let maximumDepth = 16

    /// Parses one object and nothing behind it.
    init(parsing bytes: [UInt8]) throws(ParseError) {
        var reader = Reader(bytes: bytes)
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "{")) else { throw .malformed }
        reader.skipBlanks()
        if !reader.take(UInt8(ascii: "}")) {
            repeat {
                reader.skipBlanks()
                let name = try reader.string().lowercased()
                guard values[name] == nil else { throw .repeatedName }
                reader.skipBlanks()
                guard reader.take(UInt8(ascii: ":")) else { throw .malformed }
                reader.skipBlanks()
                let start = reader.offset
                let value = try reader.value(depth: 1)
                values[name] = bytes[start] == UInt8(ascii: "{") ? .object(bytes[start..<reader.offset]) : value
                reader.skipBlanks()
            } while reader.take(UInt8(ascii: ","))
            guard reader.take(UInt8(ascii: "}")) else { throw .malformed }
        }
        reader.skipBlanks()
        guard reader.isAtEnd else { throw .malformed }
    }

    /// A string member; `nil` when absent or null. - Throws: a 400 when it is something else.
    func string(_ name: String) throws(Refusal) -> String? {
        switch values[name.lowercased()] {
        case .string(let text): return text
        case .null, nil: return nil
        case .object, .other: throw Refusal(.error(.badRequest, "\(name) is invalid."))
        }
    }

    /// The JSON text of a member that is an object; `nil` when absent or something else.
    func object(_ name: String) -> [UInt8]? {
        guard case .object(let bytes) = values[name.lowercased()] else { return nil }
        return Array(bytes)
    }

    private struct Reader {
        let bytes: [UInt8]
        var offset = 0

        var isAtEnd: Bool { offset == bytes.count }
        private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

        mutating func skipBlanks() {
            while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { offset += 1 }
        }

        mutating func take(_ byte: UInt8) -> Bool {
            guard next == byte else { return false }
            offset += 1
            return true
        }

        mutating func value(depth: Int) throws(ParseError) -> Value {
            guard depth <= JSONMembers.maximumDepth else { throw .tooDeep }
            switch next {
            case UInt8(ascii: "\""):
                return .string(try string())
            case UInt8(ascii: "{"):
                try skipContainer(closing: UInt8(ascii: "}"), depth: depth, named: true)
            case UInt8(ascii: "["):
                try skipContainer(closing: UInt8(ascii: "]"), depth: depth, named: false)
            case UInt8(ascii: "n"):
                try literal("null")
                return .null
            case UInt8(ascii: "t"):
                try literal("true")
            case UInt8(ascii: "f"):
                try literal("false")
            default:
                try skipNumber()
            }
            return .other
        }

        private mutating func skipContainer(closing: UInt8, depth: Int, named: Bool) throws(ParseError) {
            offset += 1
            skipBlanks()
            if take(closing) { return }
            repeat {
                skipBlanks()
                if named {
                    _ = try string()
                    skipBlanks()
                    guard take(UInt8(ascii: ":")) else { throw .malformed }
                    skipBlanks()
                }
                _ = try value(depth: depth + 1)
                skipBlanks()
            } while take(UInt8(ascii: ","))
            guard take(closing) else { throw .malformed }
        }

        private mutating func literal(_ text: StaticString) throws(ParseError) {
            for byte in text.description.utf8 {
                guard take(byte) else { throw .malformed }
            }
        }

        /// RFC 8259 §6; the value is nobody's business here.
        private mutating func skipNumber() throws(ParseError) {
            _ = take(UInt8(ascii: "-"))
            if !take(UInt8(ascii: "0")) { try skipDigits() }
            if take(UInt8(ascii: ".")) { try skipDigits() }
            if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
                if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
                try skipDigits()
            }
        }

        private mutating func skipDigits() throws(ParseError) {
            let start = offset
            while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { offset += 1 }
            guard offset > start else { throw .malformed }
        }

        mutating func string() throws(ParseError) -> String {
            guard take(UInt8(ascii: "\"")) else { throw .malformed }
            var utf8: [UInt8] = []
            while let byte = next {
                offset += 1
                switch byte {
                case UInt8(ascii: "\""):
                    guard !utf8.contains(0), let text = String(validating: utf8, as: UTF8.self) else {
                        throw .malformed
                    }
                    return text
                case UInt8(ascii: "\\"):
                    try escape(into: &utf8)
                case 0..<0x20:
                    throw .malformed
                default:
                    utf8.append(byte)
                }
            }
            throw .malformed
        }

        private mutating func escape(into utf8: inout [UInt8]) throws(ParseError) {
            guard let byte = next else { throw .malformed }
            offset += 1
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): utf8.append(byte)
            case UInt8(ascii: "b"): utf8.append(0x08)
            case UInt8(ascii: "f"): utf8.append(0x0C)
            case UInt8(ascii: "n"): utf8.append(0x0A)
            case UInt8(ascii: "r"): utf8.append(0x0D)
            case UInt8(ascii: "t"): utf8.append(0x09)
            case UInt8(ascii: "u"): try unicodeEscape(into: &utf8)
            default: throw .malformed
            }
        }

        private mutating func unicodeEscape(into utf8: inout [UInt8]) throws(ParseError) {
            var code = try hexQuad()
            if (0xD800..<0xDC00).contains(code) {
                guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw .malformed }
                let low = try hexQuad()
                guard (0xDC00..<0xE000).contains(low) else { throw .malformed }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw .malformed }
            utf8.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
        }

        private mutating func hexQuad() throws(ParseError) -> UInt32 {
            guard offset + 4 <= bytes.count,
                bytes[offset..<(offset + 4)].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
                let value = UInt32(String(decoding: bytes[offset..<(offset + 4)], as: UTF8.self), radix: 16)
            else { throw .malformed }
            offset += 4
            return value
        }
    }
}

extension Exchange {
    /// Parses a JSON body. - Throws: a 400 or 415 with a text that says what is wrong.
    func json() async throws(Refusal) -> JSONMembers {
        guard hasContentType("application/json") else {
            throw Refusal(.error(.unsupportedMediaType, "The content type must be application/json."))
        }
        let body = try await body()
        do {
            return try JSONMembers(parsing: Array(body.readableBytesView))
        } catch {
            throw Refusal(.error(.badRequest, "The body must be one JSON object without repeated names."))
        }
    }
}
