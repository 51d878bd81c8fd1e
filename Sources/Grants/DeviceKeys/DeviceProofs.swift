import Crypto
public import Persistence

/// A proof of possession of a device key that holds: ES256 and with a nonce.
public struct DeviceProof: Sendable {
    /// For the statement.
    public let use: ProofUse
    /// The key's coordinates, 32 bytes each.
    public let publicKey: [UInt8]
    /// Uses up the nonce itself, where one works only once.
    public let nonceUse: ProofUse

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
        let proof: DPoPProof
        do {
            proof = try proofs.verifier.verify(
                presented.fields, method: presented.method, url: presented.url, accessToken: accessToken, realm: realm,
                rules: .device)
        } catch {
            throw TokenError(error)
        }
        func use(_ id: [UInt8], binds: Bool) -> ProofUse {
            ProofUse(
                thumbprint: proof.thumbprint, id: id, time: proof.time, isByNonce: proof.isByNonce, binds: binds)
        }
        let nonce = SHA256.hash(data: Array("nonce ".utf8) + Array((proof.nonce ?? "").utf8))
        return DeviceProof(
            use: use(proof.id, binds: binds), publicKey: proof.publicKey, nonceUse: use(Array(nonce), binds: false))
    }

    /// As ``Proofs/using(in:_:)``.
    public func using<R>(in realm: Realm, _ body: () async throws -> R) async throws -> R {
        try await proofs.using(in: realm, body)
    }

    /// What answers a nonce that cannot be used again.
    public func nonceDue(_ reason: String, realm: Realm) -> TokenError {
        TokenError(proofs.verifier.nonceDue(reason, realm: realm))
    }
}
