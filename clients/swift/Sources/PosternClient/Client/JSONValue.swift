import Foundation

/// A JSON value (RFC 8259). Its description names its kind only: claims and members may be personal data.
public enum JSONValue: Sendable, Hashable {
    case null, bool(Bool), number(Double), string(String), array([JSONValue]), object([String: JSONValue])
}

extension JSONValue: Discreet {
    /// The kind of the value.
    public var shown: [(String, any Sendable)] {
        switch self {
        case .null: [("kind", "null")]
        case .bool: [("kind", "bool")]
        case .number: [("kind", "number")]
        case .string: [("kind", "string")]
        case .array: [("kind", "array")]
        case .object: [("kind", "object")]
        }
    }
}

extension JSONValue: Codable {
    /// Reads any JSON value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode([String: JSONValue].self) {
            self = .object(value)
        } else {
            self = .array(try container.decode([JSONValue].self))
        }
    }

    /// Writes the value; a whole number without a fraction.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value):
            if let whole = Int64(exactly: value) { try container.encode(whole) } else { try container.encode(value) }
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let members): try container.encode(members)
        }
    }
}

extension JSONValue {
    /// Values in values, at most. Reading takes stack for each, of which threads of Apple's platforms have 512 KiB.
    private static let deepest = 64

    /// Reads a JSON text; `nil` if it is none, or is nested too deeply.
    package init?(_ data: Data) {
        guard Self.depth(of: data) <= Self.deepest, let value = try? JSONDecoder().decode(JSONValue.self, from: data)
        else { return nil }
        self = value
    }

    /// How deeply a JSON text is nested; of another text, some number.
    private static func depth(of text: Data) -> Int {
        var (depth, deepest, isInString, isEscaped) = (0, 0, false, false)
        for byte in text {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\") where isInString: isEscaped = true
            case UInt8(ascii: "\""): isInString.toggle()
            case _ where isInString: break
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                deepest = max(deepest, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return deepest
    }

    /// The JSON text, members in order of their names.
    package var data: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a number that is not finite has no JSON text, and the initializers make none.
        return (try? encoder.encode(self)) ?? Data("null".utf8)
    }

    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var number: Double? { if case .number(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
    package var object: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }

    /// A whole number.
    package var integer: Int? { number.flatMap { Int(exactly: $0) } }

    /// The strings of an array; `nil` if it is none, or has another kind of element.
    package var strings: [String]? {
        guard let array else { return nil }
        let strings = array.compactMap(\.string)
        return strings.count == array.count ? strings : nil
    }

    /// A time in seconds since 1970 (RFC 7519: NumericDate); `nil` for what is none, and outside the years 1 to 9999.
    package var date: Date? {
        number.flatMap { (-62_135_769_600..<253_402_300_800).contains($0) ? Date(timeIntervalSince1970: $0) : nil }
    }

    /// The member of an object, whatever the case of its letters; absent when it is null.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        let value = members[name] ?? members.first { $0.key.lowercased() == name.lowercased() }?.value
        return value == .null ? nil : value
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An object; of members with one name the last one counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// A Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A number.
    public init(integerLiteral value: Int) { self = .number(Double(value)) }
}
