/// A proof of possession (RFC 9449) as a statement takes it: it is used up there, and what the statement writes is
/// bound to its key.
public struct ProofUse: Sendable, Equatable {
    /// The key: its JWK thumbprint (RFC 7638), SHA-256, 32 bytes.
    public let thumbprint: [UInt8]
    /// What it is used up as: SHA-256 over thumbprint and `jti`, 32 bytes.
    let id: [UInt8]
    /// Seconds since the epoch.
    let time: Double
    /// Whether ``time`` is that of a nonce.
    let isByNonce: Bool
    /// Whether a session that the statement opens or refreshes is bound to the key.
    let binds: Bool
    /// Of this request: a statement that is run again for it finds the proof fresh again.
    private let mark = randomBytes(8)

    /// Takes the parts as they are.
    public init(thumbprint: [UInt8], id: [UInt8], time: Double, isByNonce: Bool, binds: Bool) {
        self.thumbprint = thumbprint
        self.id = id
        self.time = time
        self.isByNonce = isByNonce
        self.binds = binds
    }

    /// What `postern.with_proof` takes: 81 bytes.
    var packed: [UInt8] {
        let milliseconds = Int64(exactly: (time * 1000).rounded(.down)) ?? 0
        let flags: UInt8 = (isByNonce ? 1 : 0) | (binds ? 2 : 0)
        return thumbprint + id + withUnsafeBytes(of: milliseconds.bigEndian, Array.init) + mark + [flags]
    }
}

extension Argument {
    /// The realm of a statement that takes a proof and no source.
    static let realmWithProof = Argument("realm", of: ["realm", "proof"]) {
        "postern.with_proof(\($0[0])::uuid, \($0[1]))"
    }
    /// The source of a statement that takes a proof.
    static let sourceWithProof = Argument("source", of: ["source", "proof"]) {
        "postern.with_proof(\($0[0])::text, \($0[1]))"
    }
}
