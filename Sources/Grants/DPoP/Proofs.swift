import Crypto
public import Persistence

/// The proof of possession that a request brings (RFC 9449 §4), not verified yet.
public struct PresentedProof: Sendable {
    let fields: [String]
    let method: String
    let url: RequestedURL

    /// - Parameters:
    ///   - fields: the values of all `DPoP` fields, as received; there is one at least.
    ///   - method: of the request.
    ///   - url: of the request.
    public init(fields: [String], method: String, url: RequestedURL) {
        self.fields = fields
        self.method = method
        self.url = url
    }
}

/// Proofs of possession from the request to the statement that uses them up.
public struct Proofs: Sendable {
    private let verifier: DPoPVerifier
    private let store: ProofStore
    private let latest: @Sendable () -> Double

    /// - Parameter latest: no node has dated a nonce later than this; seconds since the epoch.
    public init(verifier: DPoPVerifier, store: ProofStore, latest: @escaping @Sendable () -> Double) {
        self.verifier = verifier
        self.store = store
        self.latest = latest
    }

    /// What a request does with a proof that holds.
    public struct Verified: Sendable {
        /// For the statement.
        public let use: ProofUse
        /// Uses up its nonce, for a statement that takes a nonce once; `nil` unless the rules are a device's.
        public let nonceUse: ProofUse?
        /// Of a P-256 key: its coordinates, 32 bytes each.
        public let publicKey: [UInt8]
        /// For a 2xx answer, where the realm requires nonces and the presented one is past half its life.
        public let freshNonce: String?
    }

    /// Checks a proof as far as that needs no database.
    /// - Parameters:
    ///   - accessToken: the token that is presented with it; `nil` where none is.
    ///   - binds: whether a session that the request opens or refreshes is bound to the key.
    ///   - rules: what it must be beside RFC 9449.
    /// - Throws: `invalid_dpop_proof`, `use_dpop_nonce`.
    public func verify(
        _ presented: PresentedProof, accessToken: String? = nil, realm: Realm, binds: Bool = false,
        rules: DPoPRules = .standard
    ) throws(TokenError) -> Verified {
        let proof: DPoPProof
        do {
            proof = try verifier.verify(
                presented.fields, method: presented.method, url: presented.url, accessToken: accessToken, realm: realm,
                rules: rules)
        } catch {
            throw TokenError(error)
        }
        func use(_ id: [UInt8], binds: Bool) -> ProofUse {
            ProofUse(
                thumbprint: proof.thumbprint, id: id, time: proof.time, isByNonce: proof.isByNonce, binds: binds)
        }
        let nonce = rules == .device ? proof.nonce : nil
        return Verified(
            use: use(proof.id, binds: binds),
            nonceUse: nonce.map { use(Array(SHA256.hash(data: Array("nonce \($0)".utf8))), binds: false) },
            publicKey: proof.publicKey, freshNonce: proof.freshNonce)
    }

    /// Runs what uses a proof up, and turns what the database says about the proof into the client's error.
    /// - Throws: `invalid_dpop_proof`, `use_dpop_nonce`, or what the body threw.
    public func using<R>(in realm: Realm, _ body: () async throws -> R) async throws -> R {
        do {
            return try await body()
        } catch {
            switch error {
            case StoreError.proofUsed: throw TokenError(error)
            case StoreError.proofForgotten: break
            case let error as TokenError where error.code == .useDPoPNonce && error.nonce == nil: break
            default: throw error
            }
            let since = try await store.begin(for: realm.id, after: latest())
            throw TokenError(
                verifier.nonceDue("older than the store of used proofs", realm: realm, after: since))
        }
    }
}
