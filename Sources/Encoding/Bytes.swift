/// Compares without an early exit; lengths are not secret.
@inlinable
public func constantTimeEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) {
        difference |= a ^ b
    }
    return difference == 0
}

/// Big-endian bytes of a fixed-width integer.
@inlinable
public func bigEndianBytes<Integer: FixedWidthInteger>(_ value: Integer) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

extension Collection<UInt8> {
    /// Reads the whole collection as one big-endian integer; `nil` when it is too long.
    @inlinable
    public func bigEndianInteger<Integer: FixedWidthInteger & UnsignedInteger>(as type: Integer.Type) -> Integer? {
        guard count <= Integer.bitWidth / 8 else { return nil }
        return reduce(Integer(0)) { $0 << 8 | Integer($1) }
    }
}
