import HTTPTypes
import NIOCore
package import WebAuthnVerify

/// The members of a JSON request body: names are read case-insensitively, a repeated name is refused.
///
/// Read with the strict reader of WebAuthnVerify, because Foundation's silently keeps the last of two equal names.
package struct JSONMembers: Sendable {
    private enum Value: Sendable {
        case string(String)
        case null
        case bool(Bool)
        case integer(Int64)
        /// The bytes of an object.
        case object(ArraySlice<UInt8>)
        case other
    }

    private var values: [String: Value] = [:]

    /// Parses one object and nothing behind it.
    package init(parsing bytes: [UInt8]) throws(JSONError) {
        try JSONReader.validate(bytes.span, maximumLength: Request.maximumBodyBytes)
        var json = JSONReader(validated: bytes.span)
        var members = try json.object()
        while let key = try json.key(of: &members, keepsNull: true) {
            // Only ASCII letters have two cases here: a Kelvin sign is no k.
            let name = key.utf8.allSatisfy { $0 < 0x80 } ? key.lowercased() : key
            guard values[name] == nil else { throw .duplicateKey }
            if json.nextIsString {
                let text = try json.string()
                // PostgreSQL cannot store NUL in text, and no legitimate value contains it.
                guard !text.utf8.contains(0) else { throw .malformed }
                values[name] = .string(text)
            } else if try json.null() {
                values[name] = .null
            } else {
                let range = try json.skip(in: members)
                values[name] =
                    switch bytes[range.lowerBound] {
                    case UInt8(ascii: "{"): .object(bytes[range])
                    case UInt8(ascii: "t"): .bool(true)
                    case UInt8(ascii: "f"): .bool(false)
                    default: Int64(String(decoding: bytes[range], as: UTF8.self)).map { .integer($0) } ?? .other
                    }
            }
        }
        try json.finish()
    }

    /// A string member; `nil` when absent or null. - Throws: a 400 when it is something else.
    func string(_ name: String) throws(Refusal) -> String? {
        switch values[name.lowercased()] {
        case .string(let text): return text
        case .null, nil: return nil
        case .bool, .integer, .object, .other: throw Refusal(.error(.badRequest, "\(name) is invalid."))
        }
    }

    /// A Boolean member; `nil` when absent or null. - Throws: a 400 when it is something else.
    func bool(_ name: String) throws(Refusal) -> Bool? {
        switch values[name.lowercased()] {
        case .bool(let value): return value
        case .null, nil: return nil
        case .string, .integer, .object, .other: throw Refusal(.error(.badRequest, "\(name) is invalid."))
        }
    }

    /// A string member; `nil` when absent or something else.
    package func text(_ name: String) -> String? {
        guard case .string(let text) = values[name.lowercased()] else { return nil }
        return text
    }

    /// A member that is a whole number, or the digits of one; `nil` for anything else.
    func integer(_ name: String) -> Int64? {
        switch values[name.lowercased()] {
        case .integer(let value): value
        case .string(let text): Int64(text)
        case .null, .bool, .object, .other, nil: nil
        }
    }

    /// Whether a member is there and not `null`.
    package func has(_ name: String) -> Bool { values[name.lowercased()] != nil && !isNull(name) }

    /// Whether a member is there and `null`.
    func isNull(_ name: String) -> Bool {
        guard case .null = values[name.lowercased()] else { return false }
        return true
    }

    /// The JSON text of a member that is an object; `nil` when absent or something else.
    func object(_ name: String) -> [UInt8]? {
        guard case .object(let bytes) = values[name.lowercased()] else { return nil }
        return Array(bytes)
    }
}

extension Exchange {
    /// Parses a JSON body. - Throws: a 400 or 415 with a text that says what is wrong.
    func json() async throws(Refusal) -> JSONMembers {
        guard hasContentType("application/json") else {
            throw Refusal(.error(.unsupportedMediaType, "The content type must be application/json."))
        }
        let body = try body()
        do {
            return try JSONMembers(parsing: Array(body.readableBytesView))
        } catch {
            throw Refusal(.error(.badRequest, "The body must be one JSON object without repeated names."))
        }
    }
}
