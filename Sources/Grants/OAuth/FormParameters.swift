import Encoding

/// The parameters of an `application/x-www-form-urlencoded` request (RFC 6749 §3.2, appendix B).
///
/// Stricter than a web form on purpose: a repeated parameter, a broken escape, invalid UTF-8 or a NUL refuses the whole
/// request. Brackets, dots and semicolons are plain characters of a name or value. An empty value counts as absent, as
/// RFC 6749 §3.2 wants. Only `resource` may repeat (RFC 8707 §2).
public struct FormParameters: Sendable, Equatable {
    /// Empty ones too: a name that came without a value may not come again.
    /// There are few: looking at each costs a third of hashing a name, and ``maximumPairs`` bounds what many can cost.
    private var pairs: [Pair] = []

    private struct Pair: Sendable, Equatable {
        let name: String
        let value: String

        /// Most names differ in their length already.
        func has(_ name: String) -> Bool { self.name.utf8.count == name.utf8.count && self.name == name }
    }

    /// Every `resource` value in order (RFC 8707 §2).
    public private(set) var resources: [String] = []
    /// Whether a parameter was sent with a value; used for "sent at all" questions such as two client credentials.
    public private(set) var count = 0

    /// Why a body was refused.
    public enum ParseError: Error, Equatable, Sendable {
        /// A `%` that is not followed by two hexadecimal digits.
        case brokenEscape
        /// Not UTF-8, or holds NUL.
        case invalidText
        /// A parameter other than `resource` appears twice.
        case repeated
        /// More than ``maximumPairs`` pairs.
        case tooMany
    }

    /// The number of pairs beyond which a body is refused.
    public static let maximumPairs = 256

    /// No parameters.
    public init() {}

    /// Parameters that were read in another way. - Returns: `nil` when one other than `resource` appears twice.
    public init?(_ pairs: [(name: String, value: String)]) {
        for (name, value) in pairs where !value.isEmpty {
            if name == "resource" {
                resources.append(value)
            } else {
                guard self[name] == nil else { return nil }
                self.pairs.append(Pair(name: name, value: value))
                count += 1
            }
        }
    }

    /// With a value for a name that has none.
    func with(_ name: String, _ value: String) -> FormParameters {
        guard self[name] == nil else { return self }
        var form = self
        form.pairs.removeAll { $0.has(name) }
        form.pairs.append(Pair(name: name, value: value))
        form.count += 1
        return form
    }

    /// Parses a body whose size the caller has bounded.
    /// - Parameter lists: names that may repeat besides `resource`; their first value counts.
    public init(parsing body: some Collection<UInt8>, lists: Set<String> = []) throws(ParseError) {
        // A sequence of unknown kind would be copied byte by byte.
        let body = body.withContiguousStorageIfAvailable { Array($0) } ?? Array(body)
        let bytes = body.span
        var number = 0
        var start = 0
        while start < bytes.count {
            var end = start
            var separator: Int?
            while end < bytes.count, bytes[end] != UInt8(ascii: "&") {
                if bytes[end] == UInt8(ascii: "="), separator == nil { separator = end }
                end += 1
            }
            defer { start = end + 1 }
            if start == end { continue }
            number += 1
            guard number <= Self.maximumPairs else { throw .tooMany }
            let name = try Self.decode(bytes.extracting(start..<(separator ?? end)))
            var value = ""
            if let separator { value = try Self.decode(bytes.extracting((separator + 1)..<end)) }
            if name == "resource" {
                if !value.isEmpty { resources.append(value) }
                continue
            }
            guard !pairs.contains(where: { $0.has(name) }) else {
                guard lists.contains(name) else { throw .repeated }
                continue
            }
            pairs.append(Pair(name: name, value: value))
            if !value.isEmpty { count += 1 }
        }
    }

    /// The names and values that were sent, in order of name: two forms that say the same are equal in it. Without
    /// `resource`.
    public var sorted: [(name: String, value: String)] {
        pairs.filter { !$0.value.isEmpty }.map { ($0.name, $0.value) }.sorted { $0.name < $1.name }
    }

    /// The value of a parameter, `nil` when absent or empty.
    public subscript(name: String) -> String? {
        guard let pair = pairs.first(where: { $0.has(name) }), !pair.value.isEmpty else { return nil }
        return pair.value
    }

    /// Decodes `+` and `%XX` once.
    static func decode(_ bytes: Span<UInt8>) throws(ParseError) -> String {
        var escaped = false
        for index in bytes.indices {
            let byte = bytes[index]
            guard byte != 0 else { throw .invalidText }
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "%") { escaped = true }
        }
        guard escaped else { return try text(bytes) }
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "+"):
                decoded.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard index + 2 < bytes.count, let high = Hex.value(of: bytes[index + 1]),
                    let low = Hex.value(of: bytes[index + 2])
                else { throw .brokenEscape }
                guard high << 4 | low != 0 else { throw .invalidText }
                decoded.append(high << 4 | low)
                index += 2
            case let byte: decoded.append(byte)
            }
            index += 1
        }
        return try text(decoded.span)
    }

    private static func text(_ bytes: Span<UInt8>) throws(ParseError) -> String {
        guard let text = try? UTF8Span(validating: bytes) else { throw .invalidText }
        return String(copying: text)
    }
}
