/// A cursor over bytes the caller owns. Every read checks the remaining length first, so no input can reach a trap.
struct ByteReader: ~Escapable {
    let bytes: Span<UInt8>
    private(set) var offset = 0

    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>) {
        self.bytes = bytes
    }

    var remaining: Int { bytes.count - offset }

    /// The next byte without consuming it; nil at the end.
    var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    /// The next byte; nil at the end.
    @_lifetime(self: copy self)
    mutating func next() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Passes over the next `count` bytes and says where they are; nil if fewer remain.
    @_lifetime(self: copy self)
    mutating func take(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= remaining else { return nil }
        let start = offset
        offset += count
        return start..<offset
    }

    /// Passes over the bytes that `isPlain` holds for.
    @_lifetime(self: copy self)
    @inline(__always)
    mutating func skip(while isPlain: (UInt8) -> Bool) {
        var index = offset
        while index < bytes.count, isPlain(bytes[index]) { index += 1 }
        offset = index
    }

    /// A big-endian unsigned integer of `width` bytes, at most eight; nil if fewer remain.
    @_lifetime(self: copy self)
    mutating func bigEndian(width: Int) -> UInt64? {
        guard width <= 8, let range = take(width) else { return nil }
        var value: UInt64 = 0
        for index in range { value = value << 8 | UInt64(bytes[index]) }
        return value
    }
}

extension Span<UInt8> {
    /// A copy that outlives the caller's buffer.
    var array: [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { (buffer, initialized) in
            unsafe withUnsafeBufferPointer { (source) in
                initialized = unsafe buffer.initialize(fromContentsOf: source)
            }
        }
    }

    /// A copy of part of the bytes; `range` comes from a ``ByteReader`` over the same span.
    func array(_ range: Range<Int>) -> [UInt8] {
        extracting(range).array
    }

    func elementsEqual(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }
}
