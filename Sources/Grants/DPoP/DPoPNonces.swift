import Encoding
public import Persistence

/// The nonces that a server asks proofs to carry (RFC 9449 §8). They are derived, not stored: every node that holds the
/// line of the key file recognises them.
///
/// Text: base64url of `key id (4) ‖ time (8) ‖ random (12) ‖ tag (24)`, 64 characters, all of them of `token68`
/// (RFC 9110 §11.2). The time is milliseconds since the epoch, big endian. The tag is HMAC-SHA-256 over realm, time and
/// random, cut to 192 bits. No two nonces are alike: clients take a repeated one for a failure.
public struct DPoPNonces: Sendable {
    private let keyring: Keyring

    private static let byteCount = 4 + 8 + 12 + 24
    private static let characterCount = 64
    /// How far ahead of this node's clock another node's may be, in seconds.
    static let leeway = 60.0

    /// Creates them for the keys of a ring.
    public init(keyring: Keyring) {
        self.keyring = keyring
    }

    /// A new nonce of a realm.
    /// - Parameter now: seconds since the epoch.
    public func make(realm: UUIDValue, at now: Double) -> String {
        let key = keyring.newest
        let milliseconds = UInt64(exactly: (now * 1000).rounded(.down)) ?? 0
        let dated = bigEndianBytes(milliseconds) + randomBytes(12)
        return Base64.urlEncode(key.id + dated + Self.tag(dated[...], realm, key))
    }

    /// When a nonce was made, in seconds since the epoch.
    /// - Parameter now: seconds since the epoch.
    /// - Returns: `nil` for anything that this server did not make for the realm, and for a nonce from more than 60 s
    ///   ahead.
    public func time(of nonce: String, realm: UUIDValue, at now: Double) -> Double? {
        guard nonce.utf8.count == Self.characterCount, let bytes = Base64.urlDecode(nonce),
            bytes.count == Self.byteCount, let key = keyring.key(id: bytes[..<4]),
            constantTimeEqual(bytes[24...], Self.tag(bytes[4..<24], realm, key)),
            let milliseconds = bytes[4..<12].bigEndianInteger(as: UInt64.self)
        else { return nil }
        let time = Double(milliseconds) / 1000
        return time <= now + Self.leeway ? time : nil
    }

    /// - Parameter dated: time and random part.
    private static func tag(_ dated: ArraySlice<UInt8>, _ realm: UUIDValue, _ key: ServerKey) -> ArraySlice<UInt8> {
        key.hmac(.dpopNonce, [realm.bytes, Array(dated)])[..<24]
    }
}
