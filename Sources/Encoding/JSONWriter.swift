/// Writes one JSON object (RFC 8259) member by member, in the order given: answers and JWT claims need no more.
public struct JSONWriter: Sendable {
    @usableFromInline var utf8: [UInt8] = [UInt8(ascii: "{")]

    /// An empty object.
    public init(reserving capacity: Int = 512) {
        utf8.reserveCapacity(capacity)
    }

    /// Adds a string member.
    public mutating func member(_ name: StaticString, _ value: String) {
        key(name)
        write(value)
    }

    /// Adds a string member when there is a value.
    public mutating func member(_ name: StaticString, _ value: String?) {
        if let value { member(name, value) }
    }

    /// Adds a string member, `null` without a value.
    public mutating func nullable(_ name: StaticString, _ value: String?) {
        if let value { member(name, value) } else { member(name, json: "null".utf8) }
    }

    /// Adds a string member whose name is a value, too.
    public mutating func member(named name: String, _ value: String) {
        if utf8.count > 1 { utf8.append(UInt8(ascii: ",")) }
        write(name)
        utf8.append(UInt8(ascii: ":"))
        write(value)
    }

    /// Adds an integer member.
    public mutating func member(_ name: StaticString, _ value: Int) {
        key(name)
        utf8.append(contentsOf: String(value).utf8)
    }

    /// Adds a boolean member.
    public mutating func member(_ name: StaticString, _ value: Bool) {
        key(name)
        utf8.append(contentsOf: (value ? "true" : "false").utf8)
    }

    /// Adds an array of strings.
    public mutating func member(_ name: StaticString, _ values: [String]) {
        key(name)
        utf8.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { utf8.append(UInt8(ascii: ",")) }
            write(value)
        }
        utf8.append(UInt8(ascii: "]"))
    }

    /// Adds a member whose value is JSON already.
    @inlinable
    public mutating func member(_ name: StaticString, json: some Collection<UInt8>) {
        key(name)
        utf8.append(contentsOf: json)
    }

    /// An audience: a string when there is one, else an array (RFC 7519 §4.1.3).
    public mutating func audience(_ values: [String]) {
        if let only = values.first, values.count == 1 {
            member("aud", only)
        } else {
            member("aud", values)
        }
    }

    /// The finished object.
    public consuming func finish() -> [UInt8] {
        utf8.append(UInt8(ascii: "}"))
        return utf8
    }

    @usableFromInline
    mutating func key(_ name: StaticString) {
        if utf8.count > 1 { utf8.append(UInt8(ascii: ",")) }
        utf8.append(UInt8(ascii: "\""))
        name.withUTF8Buffer { utf8.append(contentsOf: $0) }
        utf8.append(UInt8(ascii: "\""))
        utf8.append(UInt8(ascii: ":"))
    }

    private mutating func write(_ text: String) {
        utf8.append(UInt8(ascii: "\""))
        var text = text
        let isPlain = text.withUTF8 { bytes in
            guard bytes.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else {
                return false
            }
            utf8.append(contentsOf: bytes)
            return true
        }
        if !isPlain { writeEscaped(text) }
        utf8.append(UInt8(ascii: "\""))
    }

    private mutating func writeEscaped(_ text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                utf8.append(UInt8(ascii: "\\"))
                utf8.append(byte)
            case 0x0A:
                utf8.append(contentsOf: "\\n".utf8)
            case 0..<0x20:
                utf8.append(contentsOf: "\\u00".utf8)
                utf8.append(Self.hexDigits[Int(byte >> 4)])
                utf8.append(Self.hexDigits[Int(byte & 15)])
            default:
                utf8.append(byte)
            }
        }
    }

    private static let hexDigits = Array("0123456789abcdef".utf8)
}
