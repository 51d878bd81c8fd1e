public import WebAuthnVerify

extension CBORValue {
    /// The item in CTAP2 canonical form: shortest lengths, map keys sorted.
    public func encoded() -> [UInt8] {
        switch self {
        case .unsigned(let value): Self.head(0, value)
        case .negative(let value): Self.head(1, value)
        case .bytes(let bytes): Self.head(2, UInt64(bytes.count)) + bytes
        case .text(let text): Self.head(3, UInt64(text.utf8.count)) + Array(text.utf8)
        case .array(let elements): Self.head(4, UInt64(elements.count)) + elements.flatMap { $0.encoded() }
        case .map(let map): Self.map(map)
        case .bool(let value): [value ? 0xf5 : 0xf4]
        case .null: [0xf6]
        case .simple(let value): value < 24 ? [0xe0 | value] : [0xf8, value]
        case .float(let width, let bits):
            [width == 2 ? 0xf9 : width == 4 ? 0xfa : 0xfb]
                + (0..<width).reversed().map { UInt8(truncatingIfNeeded: bits >> UInt64(8 * $0)) }
        }
    }

    /// An integer of either sign.
    public static func integer(_ value: Int64) -> CBORValue {
        value >= 0 ? .unsigned(UInt64(value)) : .negative(UInt64(-1 - value))
    }

    /// The encoding of a map, sorted by CTAP2 order.
    public static func map(_ map: CBORMap) -> [UInt8] {
        self.map(map.entries.map { ($0.key, $0.value) })
    }

    /// The encoding of a map with these pairs, sorted by CTAP2 order.
    public static func map(_ pairs: [(CBORValue, CBORValue)]) -> [UInt8] {
        let encoded = pairs.map { (key: $0.0.encoded(), value: $0.1.encoded()) }
        let sorted = encoded.sorted { (left, right) in
            let leftType = (left.key.first ?? 0) >> 5, rightType = (right.key.first ?? 0) >> 5
            if leftType != rightType { return leftType < rightType }
            if left.key.count != right.key.count { return left.key.count < right.key.count }
            return left.key.lexicographicallyPrecedes(right.key)
        }
        return head(5, UInt64(pairs.count)) + sorted.flatMap { $0.key + $0.value }
    }

    static func head(_ major: UInt8, _ argument: UInt64) -> [UInt8] {
        let type = major << 5
        func bytes(_ width: Int) -> [UInt8] {
            (0..<width).reversed().map { UInt8(truncatingIfNeeded: argument >> UInt64(8 * $0)) }
        }
        return switch argument {
        case 0..<24: [type | UInt8(argument)]
        case 24..<0x100: [type | 24] + bytes(1)
        case 0x100..<0x1_0000: [type | 25] + bytes(2)
        case 0x1_0000..<0x1_0000_0000: [type | 26] + bytes(4)
        default: [type | 27] + bytes(8)
        }
    }
}
