import Grants
import HTTPTypes
import Persistence

/// Calls that a device makes with a proof of its own key: header `DPoP` and no access token, or beside a token for
/// possession. Refusals are 401 with `invalid_dpop_proof` or `use_dpop_nonce`.
struct DeviceAuthentication: Sendable {
    let proofs: DeviceProofs

    /// The device that proves its key. Which device that is, and whether it is one, its statement finds out.
    /// - Throws: the answer to give.
    func device(_ exchange: Exchange) throws(Refusal) -> DeviceCaller {
        DeviceCaller(proof: try prove(exchange, for: nil), proofs: proofs)
    }

    /// The app that holds the token of a transaction and proves its key. The proof is checked before the token is
    /// looked at, as at every protected endpoint.
    /// - Throws: the answer to give.
    func possession(_ exchange: Exchange, _ tokens: PossessionTokens) throws(Refusal) -> PossessionCaller {
        let token: String
        switch exchange.presentedToken() {
        case .proven(let text): token = text
        case .none: throw Refusal(.bearerChallenge(invalidToken: false))
        case .bearer, .malformed: throw Refusal(.dpopTokenChallenge)
        }
        let proof = try prove(exchange, for: token)
        guard let authID = tokens.authID(of: token, realm: exchange.realm) else { throw Refusal(.dpopTokenChallenge) }
        return PossessionCaller(authID: authID, device: DeviceCaller(proof: proof, proofs: proofs))
    }

    /// - Parameter token: what the proof must name (`ath`); `nil`: nothing.
    private func prove(_ exchange: Exchange, for token: String?) throws(Refusal) -> DeviceProof {
        do throws(TokenError) {
            guard let presented = exchange.presentedProof else {
                throw TokenError(DPoPRefusal.invalid(reason: "no proof"))
            }
            let proof = try proofs.verify(presented, accessToken: token, realm: exchange.realm)
            exchange.nextNonce?.note(proof.freshNonce)
            return proof
        } catch {
            throw Self.refusal(error)
        }
    }

    /// The answer to a good proof of a key that is no device.
    static var unknown: Refusal { refusal(TokenError(DPoPRefusal.invalid(reason: "no device"))) }

    fileprivate static func refusal(_ error: TokenError) -> Refusal {
        Refusal(.dpopChallenge(error), because: error)
    }
}

/// A device that proved its key.
struct DeviceCaller: Sendable {
    let proof: DeviceProof
    private let proofs: DeviceProofs

    fileprivate init(proof: DeviceProof, proofs: DeviceProofs) {
        self.proof = proof
        self.proofs = proofs
    }

    /// Runs the statement that uses the proof up.
    /// - Throws: the answer to give, or what the statement threw.
    func using<R>(in realm: Realm, _ statement: () async throws -> R) async throws -> R {
        do {
            return try await proofs.using(in: realm, statement)
        } catch let error as TokenError where error.code == .invalidDPoPProof || error.code == .useDPoPNonce {
            throw DeviceAuthentication.refusal(error)
        }
    }
}

/// An app in a transaction for possession: the transaction that its token names, and its key.
struct PossessionCaller: Sendable {
    let authID: UUIDValue
    let device: DeviceCaller

    var proof: DeviceProof { device.proof }

    fileprivate init(authID: UUIDValue, device: DeviceCaller) {
        self.authID = authID
        self.device = device
    }
}
