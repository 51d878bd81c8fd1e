import Encoding
public import Persistence

/// `urn:postern:device`: a trusted device signs itself in by a proof of its key, whose nonce works once.
public struct DeviceFactor: Factor {
    /// `urn:postern:device`.
    public let grantType = GrantType.device

    private let devices: DeviceKeyStore

    public init(devices: DeviceKeyStore) {
        self.devices = devices
    }

    /// The proof's nonce; the proof itself goes with the session.
    public struct Presented: Sendable {
        let thumbprint: [UInt8]
        let nonce: ProofUse
    }

    /// By both switches.
    public func isEnabled(in realm: Realm) -> Bool { realm.nativeGrantsEnabled && realm.approvals.isEnabled }

    /// A device's own.
    public var proofRules: DPoPRules { .device }

    /// The proof is all there is.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {}

    /// The dispatcher has verified the proof.
    public func read(_ form: FormParameters, _ context: RequestContext) -> Presented? {
        guard let proof = context.proof, let nonce = context.nonce else { return nil }
        return Presented(thumbprint: proof.thumbprint, nonce: nonce)
    }

    /// With other attempts by the same device.
    public func turn(of presented: Presented, _ context: RequestContext) -> AttemptTurn {
        .whenBusy("device|\(context.realm.id)|\(Hex.encode(presented.thumbprint))")
    }

    /// The proof shows that the device has the key. It does not show that hardware holds the key.
    public func amr(of presented: Presented) -> [String] { ["pop"] }

    /// Uses up proof and nonce and opens the session.
    public func redeem(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let (outcome, verdict) = try await devices.redeem(
            realm: context.realm.id, client: context.client.key, permission: context.permission(for: grantType),
            nonce: presented.nonce, session: session, permits: permits, secondFactor: proof)
        return (outcome.map { $0.map(FactorOutcome.decided) ?? .busy }, verdict)
    }

    /// For every key that may not sign in.
    public func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "The device is not trusted.", reason: reason)
    }
}
