import Grants
import HTTPTypes

/// The door of calls that a device makes with a proof of its own key: header `DPoP` and no access token, or beside a
/// token for possession. Refusals are 401 with `invalid_dpop_proof` or `use_dpop_nonce`.
struct DeviceDoor: Sendable {
    let proofs: DeviceProofs

    /// Verifies the proof of the request.
    /// - Parameter token: what the proof must name (`ath`); `nil`: nothing.
    /// - Throws: the answer to give.
    func prove(_ exchange: Exchange, for token: String? = nil) throws(Refusal) -> DeviceProof {
        guard let presented = exchange.presentedProof else {
            throw Self.refusal(TokenError(DPoPRefusal.invalid(reason: "no proof")))
        }
        do {
            let proof = try proofs.verify(presented, accessToken: token, realm: exchange.realm)
            exchange.nextNonce?.note(proof.freshNonce)
            return proof
        } catch {
            throw Self.refusal(error)
        }
    }

    /// Verifies the proof and runs the statement that uses it up.
    /// - Throws: the answer to give, or what the body threw.
    func using<R>(
        _ exchange: Exchange, for token: String? = nil, _ body: (DeviceProof) async throws -> R
    ) async throws -> R {
        let proof = try prove(exchange, for: token)
        do {
            return try await proofs.using(in: exchange.realm) { try await body(proof) }
        } catch let error as TokenError where error.code == .invalidDPoPProof || error.code == .useDPoPNonce {
            throw Self.refusal(error)
        }
    }

    /// The answer to a good proof of a key that is no device.
    static var unknown: Refusal { refusal(TokenError(DPoPRefusal.invalid(reason: "no device"))) }

    private static func refusal(_ error: TokenError) -> Refusal {
        Refusal(.dpopChallenge(error), because: error)
    }
}
