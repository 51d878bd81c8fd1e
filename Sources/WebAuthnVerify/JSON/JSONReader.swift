/// A strict pull reader for the small JSON documents of WebAuthn: `clientDataJSON` and the serialised
/// `PublicKeyCredential`.
///
/// RFC 8259 with bounds: at most eight levels, 64 members an object, no duplicate keys at any level, no lone
/// surrogates. Numbers are checked by grammar and never converted, so no digit string can be expensive. The package's
/// request bodies are read with it too.
package struct JSONReader: ~Escapable {
    static let maximumDepth = 8
    static let maximumMembers = 64

    var input: ByteReader

    /// A reader over bytes that have passed ``validate(_:maximumLength:)``.
    @_lifetime(copy bytes)
    package init(validated bytes: Span<UInt8>) {
        input = ByteReader(bytes)
    }

    /// The checks that come before the first character is looked at: length and UTF-8.
    package static func validate(_ bytes: Span<UInt8>, maximumLength: Int) throws(JSONError) {
        guard bytes.count <= maximumLength else { throw .tooLong }
        do { _ = try UTF8Span(validating: bytes) } catch { throw .invalidUTF8 }
    }

    /// The members of one object while it is being read.
    package struct Members {
        let depth: Int
        fileprivate var keys: [String] = []

        init(depth: Int) {
            self.depth = depth
        }
    }

    /// Enters the object that must come next.
    @_lifetime(self: copy self)
    package mutating func object(in parent: Members? = nil) throws(JSONError) -> Members {
        skipWhitespace()
        guard let first = input.peek else { throw .malformed }
        guard first == UInt8(ascii: "{") else { throw .unexpectedType }
        _ = input.next()
        let depth = (parent?.depth ?? 0) + 1
        guard depth <= Self.maximumDepth else { throw .tooDeep }
        var members = Members(depth: depth)
        members.keys.reserveCapacity(8)
        return members
    }

    /// The next key of the object, positioned before its value; nil when the object has ended. A member that is `null`
    /// is an absent one: many libraries write what they have no value for. Its name may not come again all the same.
    /// - Parameter keepsNull: gives such members, too.
    @_lifetime(self: copy self)
    package mutating func key(of members: inout Members, keepsNull: Bool = false) throws(JSONError) -> String? {
        while let key = try anyKey(of: &members) {
            let isAbsent = keepsNull ? false : try null()
            if !isAbsent { return key }
        }
        return nil
    }

    @_lifetime(self: copy self)
    private mutating func anyKey(of members: inout Members) throws(JSONError) -> String? {
        skipWhitespace()
        guard var next = input.next() else { throw .malformed }
        if next == UInt8(ascii: "}") { return nil }
        if !members.keys.isEmpty {
            guard next == UInt8(ascii: ",") else { throw .malformed }
            skipWhitespace()
            guard let following = input.next() else { throw .malformed }
            next = following
        }
        guard next == UInt8(ascii: "\"") else { throw .malformed }
        let key = try text(try stringContent())
        guard members.keys.count < Self.maximumMembers else { throw .tooManyMembers }
        guard !members.keys.contains(key) else { throw .duplicateKey }
        members.keys.append(key)
        skipWhitespace()
        guard input.next() == UInt8(ascii: ":") else { throw .malformed }
        return key
    }

    /// Fails unless only whitespace remains.
    @_lifetime(self: copy self)
    package mutating func finish() throws(JSONError) {
        skipWhitespace()
        guard input.remaining == 0 else { throw .trailingBytes }
    }

    @_lifetime(self: copy self)
    mutating func skipWhitespace() {
        input.skip { $0 == 0x20 || $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
    }
}
