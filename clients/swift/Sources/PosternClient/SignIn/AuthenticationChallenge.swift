/// One challenge of `WWW-Authenticate` (RFC 9110 §11.6.1).
struct AuthenticationChallenge: Hashable {
    /// In lower case.
    let scheme: String
    /// Names in lower case. Of a repeated one the first counts.
    var parameters: [String: String] = [:]

    /// The challenges of a field, or of several that were joined by commas; none if it is malformed or over 8 KiB.
    static func all(in field: String) -> [AuthenticationChallenge] {
        guard field.utf8.count <= 8192 else { return [] }
        var scanner = Scanner(Array(field.utf8)), challenges: [AuthenticationChallenge] = []
        while scanner.skipSeparators() {
            guard let word = scanner.token() else { return [] }
            if scanner.takeEquals() {
                guard !challenges.isEmpty, let value = scanner.value() else { return [] }
                challenges[challenges.count - 1].set(word, value)
                continue
            }
            challenges.append(AuthenticationChallenge(scheme: word.lowercased()))
            guard scanner.takeSpaces() else { continue }
            scanner.skipToken68()
        }
        return challenges
    }

    private mutating func set(_ name: String, _ value: String) {
        let name = name.lowercased()
        if parameters[name] == nil { parameters[name] = value }
    }
}

/// Reads the field from left to right.
private struct Scanner {
    private let bytes: [UInt8]
    private var at = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func take(while holds: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = at
        while let byte = next, holds(byte) { at += 1 }
        return bytes[start..<at]
    }

    /// - Returns: whether something follows.
    mutating func skipSeparators() -> Bool {
        _ = take { $0 == UInt8(ascii: ",") || Self.isSpace($0) }
        return next != nil
    }

    /// - Returns: whether there was one.
    mutating func takeSpaces() -> Bool { !take(while: Self.isSpace).isEmpty }

    mutating func token() -> String? {
        let token = take(while: Self.isTokenCharacter)
        return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }

    /// `=` of a parameter, with the spaces around it.
    mutating func takeEquals() -> Bool {
        let start = at
        _ = takeSpaces()
        guard next == UInt8(ascii: "=") else {
            at = start
            return false
        }
        at += 1
        _ = takeSpaces()
        return true
    }

    mutating func value() -> String? {
        guard next == UInt8(ascii: "\"") else { return token() }
        at += 1
        var value: [UInt8] = []
        while let byte = next {
            at += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: value, as: UTF8.self) }
            if byte != UInt8(ascii: "\\") {
                value.append(byte)
            } else if let escaped = next {
                value.append(escaped)
                at += 1
            }
        }
        return nil
    }

    /// Credentials without names, such as those of `Negotiate`. Parameters stay for the next turn.
    mutating func skipToken68() {
        let start = at
        _ = take { Self.isTokenCharacter($0) || $0 == UInt8(ascii: "/") }
        _ = take { $0 == UInt8(ascii: "=") }
        _ = takeSpaces()
        if let byte = next, byte != UInt8(ascii: ",") { at = start }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    /// tchar of RFC 9110 §5.6.2.
    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
