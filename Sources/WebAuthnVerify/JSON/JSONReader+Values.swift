extension JSONReader {
    /// The next value, which must be `true` or `false`.
    @_lifetime(self: copy self)
    mutating func boolean() throws(JSONError) -> Bool {
        skipWhitespace()
        switch input.peek {
        case UInt8(ascii: "t"):
            try literal("true")
            return true
        case UInt8(ascii: "f"):
            try literal("false")
            return false
        case nil:
            throw .malformed
        default:
            throw .unexpectedType
        }
    }

    /// Consumes `null` if it comes next and says whether it did.
    @_lifetime(self: copy self)
    package mutating func null() throws(JSONError) -> Bool {
        skipWhitespace()
        guard input.peek == UInt8(ascii: "n") else { return false }
        try literal("null")
        return true
    }

    /// The next value, which must be an array of strings; at most 64 of them.
    @_lifetime(self: copy self)
    package mutating func strings() throws(JSONError) -> [String] {
        skipWhitespace()
        guard input.peek == UInt8(ascii: "[") else { throw .unexpectedType }
        _ = input.next()
        var result: [String] = []
        skipWhitespace()
        if input.peek == UInt8(ascii: "]") {
            _ = input.next()
            return result
        }
        while true {
            guard result.count < Self.maximumMembers else { throw .tooManyMembers }
            result.append(try string())
            skipWhitespace()
            switch input.next() {
            case UInt8(ascii: ","): continue
            case UInt8(ascii: "]"): return result
            default: throw .malformed
            }
        }
    }

    /// Passes over a member's value of any type, checked like one that is kept, and returns where it was.
    @_lifetime(self: copy self)
    package mutating func skip(in members: Members) throws(JSONError) -> Range<Int> {
        skipWhitespace()
        let start = input.offset
        try skipValue(depth: members.depth)
        return start..<input.offset
    }

    @_lifetime(self: copy self)
    private mutating func skipValue(depth: Int) throws(JSONError) {
        skipWhitespace()
        switch input.peek {
        case UInt8(ascii: "{"):
            var members = try object(in: Members(depth: depth))
            while try key(of: &members) != nil { try skipValue(depth: members.depth) }
        case UInt8(ascii: "["):
            guard depth < Self.maximumDepth else { throw .tooDeep }
            _ = input.next()
            try skipElements(depth: depth + 1)
        case UInt8(ascii: "\""):
            _ = try string()
        case UInt8(ascii: "t"):
            try literal("true")
        case UInt8(ascii: "f"):
            try literal("false")
        case UInt8(ascii: "n"):
            try literal("null")
        default:
            try number()
        }
    }

    @_lifetime(self: copy self)
    private mutating func skipElements(depth: Int) throws(JSONError) {
        skipWhitespace()
        if input.peek == UInt8(ascii: "]") {
            _ = input.next()
            return
        }
        while true {
            try skipValue(depth: depth)
            skipWhitespace()
            switch input.next() {
            case UInt8(ascii: ","): continue
            case UInt8(ascii: "]"): return
            default: throw .malformed
            }
        }
    }

    @_lifetime(self: copy self)
    private mutating func literal(_ text: StaticString) throws(JSONError) {
        let expected = Array(text.description.utf8)
        guard let range = input.take(expected.count), input.bytes.extracting(range).elementsEqual(expected) else {
            throw .malformed
        }
    }

    /// RFC 8259 §6: an optional minus, digits without a leading zero, an optional fraction and exponent.
    @_lifetime(self: copy self)
    private mutating func number() throws(JSONError) {
        if input.peek == UInt8(ascii: "-") { _ = input.next() }
        if input.peek == UInt8(ascii: "0") { _ = input.next() } else { try digits() }
        if input.peek == UInt8(ascii: ".") {
            _ = input.next()
            try digits()
        }
        if input.peek == UInt8(ascii: "e") || input.peek == UInt8(ascii: "E") {
            _ = input.next()
            if input.peek == UInt8(ascii: "+") || input.peek == UInt8(ascii: "-") { _ = input.next() }
            try digits()
        }
    }

    @_lifetime(self: copy self)
    private mutating func digits() throws(JSONError) {
        let start = input.offset
        while let byte = input.peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { _ = input.next() }
        guard input.offset > start else { throw .malformed }
    }
}
