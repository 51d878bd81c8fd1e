/// Watches the encoded keys of one map for order and repetition.
///
/// Two keys are the same exactly when their encodings are, because only shortest forms get this far. While keys arrive
/// in canonical order a comparison with the previous one settles both questions; the set is built at the first key that
/// does not, and its hashing is seeded per process, so chosen keys cannot make it slow.
struct CBORMapKeys {
    private let order: CBORReader.KeyOrder
    private var ranges: [Range<Int>] = []
    private var seen: Set<[UInt8]> = []
    private var sorted = true

    init(order: CBORReader.KeyOrder) {
        self.order = order
    }

    /// Notes the key encoded at `range` of `bytes`. - Throws: `.duplicateKey`, `.keyOrder`.
    mutating func insert(_ range: Range<Int>, of bytes: Span<UInt8>) throws(CBORError) {
        if sorted {
            guard let previous = ranges.last else {
                ranges.append(range)
                return
            }
            let comparison = Self.compare(bytes.extracting(previous), bytes.extracting(range))
            guard comparison != 0 else { throw .duplicateKey }
            if comparison < 0 {
                ranges.append(range)
                return
            }
            sorted = false
            for range in ranges { seen.insert(bytes.array(range)) }
        }
        // A repeated key is reported as such even where the order is already wrong.
        guard seen.insert(bytes.array(range)).inserted else { throw .duplicateKey }
        if order == .canonical { throw .keyOrder }
    }

    /// CTAP2 §8: lower major type first, then the shorter encoding, then bytewise.
    private static func compare(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Int {
        guard let leftHead = left.isEmpty ? nil : left[0], let rightHead = right.isEmpty ? nil : right[0] else {
            return 0
        }
        if leftHead >> 5 != rightHead >> 5 { return leftHead >> 5 < rightHead >> 5 ? -1 : 1 }
        if left.count != right.count { return left.count < right.count ? -1 : 1 }
        for index in left.indices where left[index] != right[index] { return left[index] < right[index] ? -1 : 1 }
        return 0
    }
}
