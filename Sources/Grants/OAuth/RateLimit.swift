/// One configured limit: GCRA with `permits` per `per` seconds sustained and `burst` at once.
public struct RateLimit: Sendable, Equatable {
    /// What is limited. A capability declares the policies of its own beside its code, and their defaults in its SQL.
    public struct Policy: RawRepresentable, Sendable, Hashable {
        /// `policy` in `postern.rate_limit_policy` and on the wire.
        public let rawValue: String

        /// Wraps a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// `POST /connect/token`.
        public static let token = Self(rawValue: "token")
        /// Calls of any endpoint that are answered 401 or 403: bad tokens, and failed client authentication.
        public static let refused = Self(rawValue: "refused")
    }

    /// By what it is counted.
    public enum Dimension: String, Sendable, Hashable, CaseIterable {
        /// The mail address as asked for from one source.
        case target
        /// The mail address, counted over all sources.
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
        /// A phone number without its last four digits.
        case prefix
        /// The country of a phone number.
        case country
        /// Units of the day's budget for messages to phones.
        case spend
    }

    /// Sustained permits per `per`.
    public let permits: Int
    /// Seconds.
    public let per: Double
    /// Permits at once.
    public let burst: Int
    /// `false` when the mode is `log-only`: counted and reported, but nothing is refused.
    public let enforced: Bool

    /// Which part of a budget a request may take from.
    enum Part: Sendable, Hashable {
        /// All of it.
        case whole
        /// The part open to all requests: the whole budget less the reserve.
        case open
        /// The fifth that is kept for known devices.
        case reserve
    }

    /// The limit of one part. A budget of fewer than five permits is not divided: `nil` for its reserve.
    func part(_ part: Part) -> RateLimit? {
        let reserve = RateLimit(permits: permits / 5, per: per, burst: burst / 5, enforced: enforced)
        let isDivided = reserve.permits > 0 && reserve.burst > 0
        switch part {
        case .whole: return self
        case .open where !isDivided: return self
        case .open:
            return RateLimit(
                permits: permits - reserve.permits, per: per, burst: burst - reserve.burst, enforced: enforced)
        case .reserve: return isDivided ? reserve : nil
        }
    }
}
