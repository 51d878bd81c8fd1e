import Encoding
import Persistence

/// A recovery code: 60 random bits as `xxxx-xxxx-xxxx`, in an alphabet without look-alikes (no i, l, o, u).
enum RecoveryCode {
    /// How many an account gets at once.
    static let count = 10
    private static let characters = 12
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)

    static func random() -> String {
        // Eight bytes are thirteen characters, the last of which is not full.
        let text = Base32.encode(randomBytes(8), alphabet: alphabet).prefix(characters)
        return stride(from: 0, to: characters, by: 4).map { start in
            let from = text.index(text.startIndex, offsetBy: start)
            return String(text[from..<text.index(from, offsetBy: 4)])
        }.joined(separator: "-")
    }

    /// What the database may know of a code: an HMAC under a key it does not hold, bound to the enrolment it came with.
    /// - Parameter presented: case does not count, and what looks alike is alike.
    static func keyed(_ presented: TypedCode, realm: UUIDValue, factor: UUIDValue, under key: DataKey) -> [UInt8] {
        key.hmac([realm.bytes, factor.bytes, normalized(presented)])
    }

    private static func normalized(_ presented: TypedCode) -> [UInt8] {
        presented.text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "o"), UInt8(ascii: "O"): UInt8(ascii: "0")
            case UInt8(ascii: "i"), UInt8(ascii: "I"), UInt8(ascii: "l"), UInt8(ascii: "L"): UInt8(ascii: "1")
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
            default: byte
            }
        }
    }
}
