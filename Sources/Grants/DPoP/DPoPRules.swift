/// What a proof must be beside what RFC 9449 §4.3 asks.
public enum DPoPRules: Sendable {
    /// Nothing more.
    case standard
    /// A device's own: ES256, since the stores of keys in phones and browsers make no other, and with a nonce whatever
    /// the realm's policy, since clocks of phones are minutes off.
    case device

    func admits(_ algorithm: ClientKey.Algorithm) -> Bool { self == .standard || algorithm == .es256 }
}
