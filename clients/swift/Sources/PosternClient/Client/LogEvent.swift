import Foundation

/// Something that the library did. It has no token, code, key, address or query of a URL.
public struct LogEvent: Sendable, Hashable {
    /// `request`, `retry`, `refresh`, `superseded`, `signed_in`, `signed_out`, `store_locked`, `store_damaged`, `key_made`,
    /// `key_lost`, `clock` or `nonce`.
    public let kind: String
    /// For `request`: `method`, `path`, `status` (`0` without an answer) and `ms`. For others, what names them best.
    public let detail: [String: String]
    /// The time by the clock of the device.
    public let at: Date
}
