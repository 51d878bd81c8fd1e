extension CBORReader {
    /// The next item, which must be an integer that fits `Int64`.
    @_lifetime(self: copy self)
    public mutating func integer() throws(CBORError) -> Int64 {
        let head = try head()
        switch head.major {
        case .unsigned:
            guard let value = Int64(exactly: head.argument) else { throw .integerOutOfRange }
            return value
        case .negative:
            guard let value = Int64(exactly: head.argument) else { throw .integerOutOfRange }
            return -1 - value
        default:
            throw .unexpectedType
        }
    }

    /// The next item, which must be a byte string: where its bytes are.
    @_lifetime(self: copy self)
    mutating func byteString() throws(CBORError) -> Range<Int> {
        let head = try head()
        guard head.major == .bytes else { throw .unexpectedType }
        return try content(head)
    }

    /// The next item, which must be a text string: where its UTF-8 is.
    @_lifetime(self: copy self)
    mutating func textString() throws(CBORError) -> Range<Int> {
        let head = try head()
        guard head.major == .text else { throw .unexpectedType }
        let range = try content(head)
        try validateUTF8(range)
        return range
    }

    /// The number of pairs of the next item, which must be a map; its keys and values follow.
    @_lifetime(self: copy self)
    public mutating func mapCount() throws(CBORError) -> Int {
        let head = try head()
        guard head.major == .map else { throw .unexpectedType }
        return try count(head.argument, itemWidth: 2)
    }

    /// Passes over one item, checked like one that is kept, and returns where it was.
    @_lifetime(self: copy self)
    mutating func skip() throws(CBORError) -> Range<Int> {
        let start = offset
        try skipItem(depth: 0)
        return start..<offset
    }

    func validateUTF8(_ range: Range<Int>) throws(CBORError) {
        do { _ = try UTF8Span(validating: bytes.extracting(range)) } catch { throw .invalidUTF8 }
    }

    @_lifetime(self: copy self)
    mutating func content(_ head: Head) throws(CBORError) -> Range<Int> {
        guard let range = input.take(try count(head.argument, itemWidth: 1)) else { throw .truncated }
        return range
    }

    @_lifetime(self: copy self)
    private mutating func skipItem(depth: Int) throws(CBORError) {
        let head = try head()
        switch head.major {
        case .unsigned, .negative, .simple, .tag:
            return
        case .bytes:
            _ = try content(head)
        case .text:
            try validateUTF8(try content(head))
        case .array:
            guard depth < maximumDepth else { throw .tooDeep }
            for _ in 0..<(try count(head.argument, itemWidth: 1)) { try skipItem(depth: depth + 1) }
        case .map:
            guard depth < maximumDepth else { throw .tooDeep }
            var keys = CBORMapKeys(order: keyOrder)
            for _ in 0..<(try count(head.argument, itemWidth: 2)) {
                let start = offset
                try skipItem(depth: depth + 1)
                try keys.insert(start..<offset, of: bytes)
                try skipItem(depth: depth + 1)
            }
        }
    }
}
