/// One configured limit: GCRA with `permits` per `per` seconds sustained and `burst` at once (contract §3, §4.5).
public struct RateLimit: Sendable, Equatable {
    /// What is limited.
    public enum Policy: String, Sendable, Hashable, CaseIterable {
        /// `otp/request` and `register`.
        case nativeOTP = "native-otp"
        /// `magic-link/request`.
        case magicLink = "magic-link"
        /// `passkey/begin`.
        case passkeyBegin = "passkey-begin"
        /// `POST /connect/token`.
        case token
        /// Calls of any endpoint that are answered 401 or 403: bad tokens, and failed client authentication.
        case refused
    }

    /// By what it is counted.
    public enum Dimension: String, Sendable, Hashable, CaseIterable {
        /// The mail address as asked for from one source.
        case target
        /// The mail address, whoever asks.
        case targetTotal = "target-total"
        /// The caller's address; IPv6 by /64, and by /48 with sixteen times the permits.
        case source
        /// The client.
        case client
        /// The App whose host was used.
        case app
        /// Refused codes of one account presented by `username` alone.
        case failures
        /// Unknown addresses that one source asks codes for.
        case registrations
        /// Codes of the realm that were compared and wrong.
        case wrongCodes = "wrong-codes"
    }

    /// Sustained permits per `per`.
    public let permits: Int
    /// Seconds.
    public let per: Double
    /// Permits at once.
    public let burst: Int
    /// `false` when the mode is `log-only`: counted and reported, but nothing is refused.
    public let enforced: Bool
}
