/// Why a proof is refused (RFC 9449 §5, §8).
public enum DPoPRefusal: Error, Equatable, Sendable {
    /// `invalid_dpop_proof`.
    /// - Parameter reason: the check that failed, for the log; it holds nothing that the client sent.
    case invalid(reason: String)
    /// `use_dpop_nonce`.
    /// - Parameter nonce: the value of the field `DPoP-Nonce`.
    case nonceDue(reason: String, nonce: String)

    /// The check that failed, for the log.
    public var reason: String {
        switch self {
        case .invalid(let reason), .nonceDue(let reason, _): reason
        }
    }
}

extension TokenError {
    /// A refused proof.
    public init(_ refusal: DPoPRefusal) {
        switch refusal {
        case .invalid(let reason): self = .invalidProof(reason)
        case .nonceDue(let reason, let nonce): self = .nonceDue(reason, nonce)
        }
    }
}
