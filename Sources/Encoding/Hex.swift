/// Hexadecimal; written in lower case, as PostgreSQL's `encode(…, 'hex')` does.
public enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Two digits a byte.
    public static func encode(_ bytes: [UInt8]) -> String {
        String(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
            for (position, byte) in bytes.enumerated() {
                buffer.initializeElement(at: 2 * position, to: digits[Int(byte >> 4)])
                buffer.initializeElement(at: 2 * position + 1, to: digits[Int(byte & 15)])
            }
            return 2 * bytes.count
        }
    }

    /// The bytes of an even number of digits in either case; `nil` for anything else.
    public static func decode(_ text: String) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count / 2)
        for index in stride(from: 0, to: utf8.count, by: 2) {
            guard let high = value(of: utf8[index]), let low = value(of: utf8[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// What a digit in either case stands for; `nil` for any other character.
    @inlinable
    public static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
