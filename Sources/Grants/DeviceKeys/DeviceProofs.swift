public import Persistence

/// A proof of possession of a device key that holds: ES256 and with a nonce.
public struct DeviceProof: Sendable {
    /// For the statement.
    public let use: ProofUse
    /// The key's coordinates, 32 bytes each.
    public let publicKey: [UInt8]
    /// The nonce that the device uses next; `nil`: it keeps its own.
    public let freshNonce: String?

    /// The device: the thumbprint of its key (RFC 7638 with SHA-256), 32 bytes.
    public var thumbprint: [UInt8] { use.thumbprint }
}

/// Proofs that devices make with their own key: those of ``Proofs`` with two rules more (``DPoPRules/device``).
public struct DeviceProofs: Sendable {
    private let proofs: Proofs

    /// Verifies as `proofs` does.
    public init(_ proofs: Proofs) {
        self.proofs = proofs
    }

    /// Checks a proof as far as that needs no database.
    /// - Parameters:
    ///   - accessToken: the token that it must name (`ath`); `nil`: none.
    ///   - binds: whether a session that the request opens is bound to the key.
    /// - Throws: `invalid_dpop_proof`, `use_dpop_nonce`.
    public func verify(
        _ presented: PresentedProof, accessToken: String? = nil, realm: Realm, binds: Bool = false
    ) throws(TokenError) -> DeviceProof {
        let proof = try proofs.verify(
            presented, accessToken: accessToken, realm: realm, binds: binds, rules: .device)
        return DeviceProof(use: proof.use, publicKey: proof.publicKey, freshNonce: proof.freshNonce)
    }

    /// As ``Proofs/using(in:_:)``.
    public func using<R>(in realm: Realm, _ body: () async throws -> R) async throws -> R {
        try await proofs.using(in: realm, body)
    }
}
