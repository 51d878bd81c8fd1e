public import Persistence

/// The JWS algorithms a realm signs with (RFC 7518 §3.1, RFC 8037 §3.1).
public enum SigningAlgorithm: String, Sendable, CaseIterable {
    case es256 = "ES256"
    case rs256 = "RS256"
    case edDSA = "EdDSA"
}

/// A signing key as stored: public part readable, private part sealed under a data key.
public struct SealedSigningKey: Sendable, Equatable {
    /// The key identifier, in JWT headers and the JWK Set.
    public let kid: String
    /// JWS algorithm (RFC 7518 §3.1).
    public let alg: String
    /// Whether it signs for every client that asks for no algorithm of its own.
    public let forRealm: Bool
    /// The public JWK as JSON text.
    public let publicJWK: String
    /// The sealed private key.
    public let sealedPrivateKey: [UInt8]
    /// The data key that opens it, sealed; `nil` when the private key names none.
    public let dataKey: SealedDataKey?
    /// Seconds since the epoch, database clock: not used to sign before this.
    public let activatesAt: Double
    /// Seconds since the epoch: gone from the JWK Set after this.
    public let retiresAt: Double?
}

/// The public half of a signing key that is not yet deleted, retired or not.
struct HintKey: Sendable, Equatable {
    /// The JWS protected header of an ID token that the key signed.
    let header: String
    let algorithm: ClientKey.Algorithm
    let key: ClientKey

    /// `nil` for a key of an algorithm this binary does not know.
    init?(kid: String, alg: String, publicJWK: ClientKey) {
        guard let algorithm = ClientKey.Algorithm(rawValue: alg) else { return nil }
        self.algorithm = algorithm
        key = publicJWK
        header = JWSHeader.text(alg: alg, typ: "JWT", kid: kid)
    }
}
