/// A UUID as PostgreSQL stores it: 16 bytes. Foundation-free and cheap to copy.
public struct UUIDValue: Sendable, Hashable, Comparable, LosslessStringConvertible {
    private let high: UInt64
    private let low: UInt64

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Takes 16 bytes in network order; `nil` for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        let value = bytes.withContiguousStorageIfAvailable { UUIDValue(UnsafeRawBufferPointer($0)) }
        guard let value = value ?? Array(bytes).withUnsafeBytes({ UUIDValue($0) }) else { return nil }
        self = value
    }

    /// Reads the form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, hexadecimal in either case; `nil` for anything else.
    public init?(_ text: String) {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var digits = 0
        for (position, unit) in text.utf8.enumerated() {
            if position == 8 || position == 13 || position == 18 || position == 23 {
                guard unit == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard position < 36, let value = Self.hexValue(unit) else { return nil }
            if digits < 16 { high = high << 4 | value } else { low = low << 4 | value }
            digits += 1
        }
        guard digits == 32 else { return nil }
        self.init(high: high, low: low)
    }

    /// A random UUID (RFC 9562 §5.4, version 4) from the system's generator.
    public static func random() -> UUIDValue {
        var generator = SystemRandomNumberGenerator()
        return UUIDValue(
            high: generator.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000,
            low: generator.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    /// A UUID that looks like a random one, from the first 16 of bytes that do. - Parameter bytes: at least 16.
    public init(derivedFrom bytes: [UInt8]) {
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(
            high: number(bytes.prefix(8)) & 0xFFFF_FFFF_FFFF_0FFF | 0x4000,
            low: number(bytes.dropFirst(8).prefix(8)) & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    /// The version (RFC 9562 §4.2), 0 to 15.
    public var version: Int { Int(high >> 12 & 0xF) }

    /// Whether it is the id of a test identity: a UUID of version 8, where every other user has version 4
    /// (`postern.is_test_identity`).
    public var isTestIdentity: Bool { version == 8 }

    /// The order of the bytes, which is PostgreSQL's.
    public static func < (left: UUIDValue, right: UUIDValue) -> Bool { (left.high, left.low) < (right.high, right.low) }

    /// The 16 bytes in network order.
    public var bytes: [UInt8] {
        Array(unsafeUninitializedCapacity: 16) { buffer, count in
            for position in 0..<8 {
                buffer.initializeElement(at: position, to: UInt8(truncatingIfNeeded: high >> (56 - 8 * position)))
                buffer.initializeElement(at: position + 8, to: UInt8(truncatingIfNeeded: low >> (56 - 8 * position)))
            }
            count = 16
        }
    }

    /// Lower-case text form with hyphens.
    public var description: String {
        String(unsafeUninitializedCapacity: 36) { buffer in
            var position = 0
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
                    buffer.initializeElement(at: position, to: UInt8(ascii: "-"))
                    position += 1
                }
                let half = digit < 16 ? high : low
                let value = UInt8(truncatingIfNeeded: half >> (60 - 4 * (digit % 16))) & 0xF
                let unit = value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
                buffer.initializeElement(at: position, to: unit)
                position += 1
            }
            return position
        }
    }

    /// The first eight bytes as PostgreSQL's `bigint` (`postern.proof_mix`).
    var firstHalf: Int64 { Int64(bitPattern: high) }

    /// Appends the 16 bytes to `buffer`.
    func write(to buffer: inout [UInt8]) {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { buffer.append(contentsOf: $0) }
    }

    /// Reads exactly 16 bytes of memory.
    init?(_ memory: UnsafeRawBufferPointer) {
        guard memory.count == 16 else { return nil }
        self.init(
            high: UInt64(bigEndian: memory.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: memory.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    private static func hexValue(_ unit: UInt8) -> UInt64? {
        switch unit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(unit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(unit - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(unit - UInt8(ascii: "A") + 10)
        default: nil
        }
    }
}
