/// What a realm asks of proofs of possession (`admin.set_dpop`).
public struct DPoPPolicy: Sendable, Equatable {
    /// Whether each proof needs a nonce. Otherwise only a proof does whose `iat` is not of this minute.
    public let requiresNonce: Bool
    /// How long a nonce is accepted, in seconds.
    public let nonceLifetime: Int

    package init(requiresNonce: Bool = false, nonceLifetime: Int = 300) {
        self.requiresNonce = requiresNonce
        self.nonceLifetime = nonceLifetime
    }
}

/// As `postern.realm_config` writes it.
struct DPoPPolicyRecord: Decodable {
    let nonce: String
    let nonceLifetime: Int
}

extension DPoPPolicy {
    init(_ record: DPoPPolicyRecord) {
        // A mode of a newer schema is the stricter one.
        self.init(requiresNonce: record.nonce != "auto", nonceLifetime: record.nonceLifetime)
    }
}
