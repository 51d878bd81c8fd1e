/// A CBOR item that owns its content: attestation statements, extension outputs and tests are read into it.
public indirect enum CBORValue: Equatable, Sendable {
    /// Major type 0.
    case unsigned(UInt64)
    /// Major type 1; the value is −1 − n, which need not fit any Swift integer.
    case negative(UInt64)
    /// Major type 2.
    case bytes([UInt8])
    /// Major type 3.
    case text(String)
    /// Major type 4.
    case array([CBORValue])
    /// Major type 5.
    case map(CBORMap)
    /// Simple values 20 and 21.
    case bool(Bool)
    /// Simple value 22.
    case null
    /// Every other simple value, `undefined` (23) among them.
    case simple(UInt8)
    /// A floating-point number as it was encoded: width in bytes and bit pattern.
    case float(width: Int, bits: UInt64)

    /// Reads `bytes` as exactly one item.
    public init(
        parsing bytes: Span<UInt8>,
        keyOrder: CBORReader.KeyOrder = .any,
        maximumDepth: Int = CBORReader.defaultMaximumDepth
    ) throws(CBORError) {
        var reader = CBORReader(bytes, keyOrder: keyOrder, maximumDepth: maximumDepth)
        self = try reader.value()
        try reader.finish()
    }

    /// The content of a byte string.
    public var byteString: [UInt8]? {
        if case .bytes(let value) = self { value } else { nil }
    }

    /// The content of a text string.
    public var textString: String? {
        if case .text(let value) = self { value } else { nil }
    }

    /// The elements of an array.
    public var elements: [CBORValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The content of a map.
    public var mapping: CBORMap? {
        if case .map(let value) = self { value } else { nil }
    }

    /// An integer that fits `Int64`.
    public var integer: Int64? {
        switch self {
        case .unsigned(let value): Int64(exactly: value)
        case .negative(let value): Int64(exactly: value).map { -1 - $0 }
        default: nil
        }
    }
}

/// The pairs of a CBOR map in the order they were encoded; keys are unique.
public struct CBORMap: Equatable, Sendable {
    /// One pair.
    public struct Entry: Equatable, Sendable {
        /// The key.
        public var key: CBORValue
        /// The value.
        public var value: CBORValue
    }

    /// All pairs.
    public internal(set) var entries: [Entry] = []

    /// The value under a text key.
    public subscript(_ key: String) -> CBORValue? {
        entries.first { $0.key == .text(key) }?.value
    }

    /// True when exactly these text keys are present.
    func hasOnly(_ keys: String...) -> Bool {
        entries.count == keys.count && keys.allSatisfy { self[$0] != nil }
    }
}
