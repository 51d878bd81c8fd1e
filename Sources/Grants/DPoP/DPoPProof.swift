/// A proof of possession that holds (RFC 9449 §4.3). Whether it was used before, and whether the key is the one that
/// something is bound to, only the database knows.
public struct DPoPProof: Sendable, Equatable {
    /// The key: its JWK thumbprint (RFC 7638), SHA-256, 32 bytes.
    public let thumbprint: [UInt8]
    /// What the proof is used up as: SHA-256 over thumbprint and `jti`, 32 bytes.
    public let id: [UInt8]
    /// When the nonce was made, else `iat`; seconds since the epoch.
    public let time: Double
    /// Whether ``time`` is that of a nonce.
    public let isByNonce: Bool
    /// A new nonce for a 2xx answer, where the realm requires nonces and the presented one is past half its life.
    public let freshNonce: String?
    /// The nonce that it carries.
    let nonce: String?
    /// Of a P-256 key: its coordinates, 32 bytes each; empty for others.
    let publicKey: [UInt8]
}
