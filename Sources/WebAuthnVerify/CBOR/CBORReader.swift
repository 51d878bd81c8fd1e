/// Reads CBOR items one after another from bytes the caller owns, without copying (RFC 8949, the CTAP2 subset).
///
/// Always refused: indefinite lengths, tags, integers and lengths that are not in shortest form, duplicate keys,
/// invalid UTF-8, more than ``maximumDepth`` levels. Declared lengths are compared with what remains before anything is
/// allocated.
public struct CBORReader: ~Escapable {
    /// Whether map keys must be in CTAP2 order.
    public enum KeyOrder: Sendable {
        /// CTAP2 order: by major type, then length, then bytes.
        case canonical
        /// Any order. Some authenticators, and every platform that re-encodes with a general library, do not sort.
        case any
    }

    /// CTAP2 allows four levels of arrays and maps.
    public static var defaultMaximumDepth: Int { 4 }

    var input: ByteReader
    let keyOrder: KeyOrder
    let maximumDepth: Int

    /// A reader at the start of `bytes`.
    @_lifetime(copy bytes)
    public init(
        _ bytes: Span<UInt8>, keyOrder: KeyOrder = .any, maximumDepth: Int = CBORReader.defaultMaximumDepth
    ) {
        self.input = ByteReader(bytes)
        self.keyOrder = keyOrder
        self.maximumDepth = maximumDepth
    }

    /// How many bytes have been read.
    public var offset: Int { input.offset }

    /// The bytes being read, for use with the ranges this reader returns.
    var bytes: Span<UInt8> {
        @_lifetime(copy self) get { input.bytes }
    }

    /// The initial byte and argument of an item (RFC 8949 §3).
    struct Head {
        var major: MajorType
        var additional: UInt8
        var argument: UInt64
    }

    enum MajorType: UInt8 {
        case unsigned = 0, negative, bytes, text, array, map, tag, simple
    }

    /// Reads a head and enforces shortest form, definite length and the absence of tags.
    @_lifetime(self: copy self)
    mutating func head() throws(CBORError) -> Head {
        guard let initial = input.next() else { throw .truncated }
        guard let major = MajorType(rawValue: initial >> 5) else { throw .malformed }
        let additional = initial & 0x1f
        let argument: UInt64
        switch additional {
        case 0..<24:
            argument = UInt64(additional)
        case 24...27:
            let exponent = Int(additional - 24)
            guard let value = input.bigEndian(width: 1 << exponent) else { throw .truncated }
            argument = value
            if major != .simple {
                // The smallest value that needs this width: 24, 2^8, 2^16, 2^32.
                let least: UInt64 = exponent == 0 ? 24 : 1 << (4 << exponent)
                guard value >= least else { throw .notShortestForm }
            } else if additional == 24, value < 32 {
                throw .malformed
            }
        case 31:
            switch major {
            case .bytes, .text, .array, .map: throw .indefiniteLength
            default: throw .malformed
            }
        default:
            throw .malformed
        }
        guard major != .tag else { throw .tag }
        return Head(major: major, additional: additional, argument: argument)
    }

    /// The argument as a count of items of at least `width` bytes each. - Throws: `.truncated` if they cannot all
    /// follow.
    func count(_ argument: UInt64, itemWidth width: Int) throws(CBORError) -> Int {
        guard let count = Int(exactly: argument), count <= input.remaining / width else { throw .truncated }
        return count
    }

    /// Fails unless the whole input has been read.
    public func finish() throws(CBORError) {
        guard input.remaining == 0 else { throw .trailingBytes }
    }
}
