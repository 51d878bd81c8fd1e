/// Two lower-case digits a byte, as PostgreSQL's `encode(…, 'hex')` writes them.
func hex(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
        for (position, byte) in bytes.enumerated() {
            buffer.initializeElement(at: 2 * position, to: digits[Int(byte >> 4)])
            buffer.initializeElement(at: 2 * position + 1, to: digits[Int(byte & 15)])
        }
        return 2 * bytes.count
    }
}

private let digits = Array("0123456789abcdef".utf8)
