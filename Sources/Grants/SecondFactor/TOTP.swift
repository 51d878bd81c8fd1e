import Encoding
import Crypto

/// Time-based one-time passwords (RFC 6238) with what every authenticator app supports: SHA-1, six digits, steps of 30
/// seconds.
enum TOTP {
    /// Seconds.
    static let step = 30
    static let digits = 6

    /// The number of the time step that holds `instant`.
    /// - Parameter instant: seconds since the epoch, by the database clock.
    static func step(at instant: Double) -> Int64 {
        Int64((instant / Double(step)).rounded(.down))
    }

    /// HOTP (RFC 4226 §5.3): dynamic truncation of HMAC-SHA-1 over the counter.
    static func code(_ seed: [UInt8], step: Int64) -> String {
        let mac = Array(
            HMAC<Insecure.SHA1>.authenticationCode(for: bigEndianBytes(step), using: SymmetricKey(data: seed)))
        let offset = Int(mac[19] & 0x0F)
        let truncated = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let text = String(truncated % 1_000_000)
        return String(repeating: "0", count: digits - text.count) + text
    }

    /// The newest step of `now` and its two neighbours (RFC 6238 §5.2, §6) whose code was presented and that began
    /// after `lastStepAt`; `nil` when there is none. All three are always compared, so that the time reveals no match.
    /// - Parameters:
    ///   - now: seconds since the epoch, by the database clock.
    ///   - lastStepAt: the start of the newest step that was accepted before, likewise; `nil` for none.
    static func match(_ presented: TypedCode, seed: [UInt8], now: Double, after lastStepAt: Double?) -> Int64? {
        let digits = Array(presented.text.utf8)
        let current = step(at: now)
        var matched: Int64?
        for candidate in [current - 1, current, current + 1] {
            let equal = constantTimeEqual(Array(code(seed, step: candidate).utf8), digits)
            if equal, Double(candidate * Int64(step)) > lastStepAt ?? -.infinity { matched = candidate }
        }
        return matched
    }
}
