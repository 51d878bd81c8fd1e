extension CBORReader {
    /// Reads the next item of any type.
    @_lifetime(self: copy self)
    public mutating func value() throws(CBORError) -> CBORValue {
        try value(depth: 0)
    }

    @_lifetime(self: copy self)
    private mutating func value(depth: Int) throws(CBORError) -> CBORValue {
        let head = try head()
        switch head.major {
        case .unsigned:
            return .unsigned(head.argument)
        case .negative:
            return .negative(head.argument)
        case .bytes:
            return .bytes(bytes.array(try content(head)))
        case .text:
            return .text(try text(try content(head)))
        case .array:
            guard depth < maximumDepth else { throw .tooDeep }
            return .array(try array(head, depth: depth + 1))
        case .map:
            guard depth < maximumDepth else { throw .tooDeep }
            return .map(try map(head, depth: depth + 1))
        case .tag:
            throw .tag
        case .simple:
            return simple(head)
        }
    }

    @_lifetime(self: copy self)
    private mutating func array(_ head: Head, depth: Int) throws(CBORError) -> [CBORValue] {
        let count = try count(head.argument, itemWidth: 1)
        var elements: [CBORValue] = []
        elements.reserveCapacity(min(count, 64))
        for _ in 0..<count { elements.append(try value(depth: depth)) }
        return elements
    }

    @_lifetime(self: copy self)
    private mutating func map(_ head: Head, depth: Int) throws(CBORError) -> CBORMap {
        var keys = CBORMapKeys(order: keyOrder)
        var map = CBORMap()
        for _ in 0..<(try count(head.argument, itemWidth: 2)) {
            let start = offset
            let key = try value(depth: depth)
            try keys.insert(start..<offset, of: bytes)
            map.entries.append(.init(key: key, value: try value(depth: depth)))
        }
        return map
    }

    private func text(_ range: Range<Int>) throws(CBORError) -> String {
        do {
            return String(copying: try UTF8Span(validating: bytes.extracting(range)))
        } catch {
            throw .invalidUTF8
        }
    }

    private func simple(_ head: Head) -> CBORValue {
        switch head.additional {
        case 20: .bool(false)
        case 21: .bool(true)
        case 22: .null
        case 25: .float(width: 2, bits: head.argument)
        case 26: .float(width: 4, bits: head.argument)
        case 27: .float(width: 8, bits: head.argument)
        // The head holds one byte here: additional information below 24, or the byte after 24.
        default: .simple(UInt8(truncatingIfNeeded: head.argument))
        }
    }
}
