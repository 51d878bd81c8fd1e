/// What a proof must have beside the checks of RFC 9449 §4.3.
public enum DPoPRules: Sendable {
    /// Nothing more.
    case standard
    /// A proof by a trusted device: ES256, the algorithm of the key stores of phones and browsers, and always with a
    /// nonce, also where the realm's policy wants none: clocks of phones are minutes off.
    case device

    func admits(_ algorithm: ClientKey.Algorithm) -> Bool { self == .standard || algorithm == .es256 }
}
