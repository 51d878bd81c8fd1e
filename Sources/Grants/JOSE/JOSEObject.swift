import WebAuthnVerify

/// One JSON object of a JOSE header or a set of claims. Strict (``JSONReader``): no repeated member at any level, and
/// bounded. A member that is `null` is there, and of no use: `crit` and `d` refuse whatever their value is.
struct JOSEObject {
    private enum Value {
        case string(String)
        /// Anything else, as it was written.
        case other(ArraySlice<UInt8>)
    }

    /// A few: to compare their names is quicker than to hash one.
    private var members: [(name: String, value: Value)] = []

    /// `nil` unless the bytes are one object.
    init?(_ bytes: [UInt8]) {
        guard (try? read(bytes)) != nil else { return nil }
    }

    private mutating func read(_ bytes: [UInt8]) throws(JSONError) {
        try JSONReader.validate(bytes.span, maximumLength: JWS.maximumBytes)
        var json = JSONReader(validated: bytes.span)
        var object = try json.object()
        while let name = try json.key(of: &object, keepsNull: true) {
            let value =
                json.nextIsString ? Value.string(try json.string()) : .other(bytes[try json.skip(in: object)])
            members.append((name, value))
        }
        try json.finish()
    }

    private subscript(name: String) -> Value? { members.first { $0.name == name }?.value }

    func has(_ name: String) -> Bool { self[name] != nil }

    /// Whether the member is absent or this string.
    func isAbsent(_ name: String, or expected: String) -> Bool { !has(name) || text(name) == expected }

    /// `nil` where the member is absent or no string.
    func text(_ name: String) -> String? {
        if case .string(let value) = self[name] { value } else { nil }
    }

    func isAbsentOrText(_ name: String) -> Bool { !has(name) || text(name) != nil }

    func isAbsentOrDate(_ name: String) -> Bool { !has(name) || date(name) != nil }

    /// A string, or an array of strings (`aud`, RFC 7519 §4.1.3); `nil` where the member is absent or anything else.
    func texts(_ name: String) -> [String]? {
        switch self[name] {
        case .string(let value): [value]
        case .other(let text): try? Self.strings(Array(text))
        case nil: nil
        }
    }

    private static func strings(_ bytes: [UInt8]) throws(JSONError) -> [String] {
        var json = JSONReader(validated: bytes.span)
        return try json.strings()
    }

    /// `nil` where the member is absent or no object.
    func object(_ name: String) -> JOSEObject? {
        bytes(name).flatMap(JOSEObject.init)
    }

    /// As it was written; `nil` where the member is absent or a string.
    func bytes(_ name: String) -> [UInt8]? {
        if case .other(let text) = self[name] { Array(text) } else { nil }
    }

    /// NumericDate (RFC 7519 §2) from 1970 to 9999; `nil` where the member is absent or anything else.
    func date(_ name: String) -> Double? {
        guard case .other(let text) = self[name], text.count <= 32, text.first.map(Self.beginsNumber) == true,
            let value = Double(String(decoding: text, as: UTF8.self)), (0...253_402_300_799).contains(value)
        else { return nil }
        return value
    }

    private static func beginsNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
