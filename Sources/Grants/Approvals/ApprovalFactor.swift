import Encoding
import Persistence

/// `urn:openid:params:grant-type:ciba`: an approval on a trusted device, polled for by the client that asked.
struct ApprovalFactor: Factor {
    let grantType = GrantType.ciba

    let store: ApprovalStore
    let keyring: Keyring

    /// `auth_req_id`.
    func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["auth_req_id"] != nil else { throw .missing("auth_req_id") }
    }

    /// `nil` for any text but one that was given to this client.
    func read(_ form: FormParameters, _ context: RequestContext) -> AuthenticationRequestHandle? {
        guard let presented = form["auth_req_id"],
            let handle = AuthenticationRequestHandle(presented, realm: context.realm.id, keyring: keyring),
            handle.client == context.client.key
        else { return nil }
        return handle
    }

    /// One turn for all polls with the handle.
    func turn(of presented: AuthenticationRequestHandle, _ context: RequestContext) -> AttemptTurn {
        .whenBusy("approval|\(context.realm.id)|\(presented.id)")
    }

    /// The device's key signed, over another channel than the asker's (docs/decisions/0039).
    func amr(of presented: AuthenticationRequestHandle) -> [String] { ["pop", "mca"] }

    /// Consumes the approval and opens the session.
    func redeem(
        _ presented: AuthenticationRequestHandle, _ context: RequestContext, opening session: NewSession,
        proof: SecondFactorProof?, permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let (polled, verdict) = try await store.redeem(
            realm: context.realm.id, client: context.client.key, permission: context.permission(for: grantType),
            id: presented.id, expiresAt: presented.expiresAt, session: session, permits: permits, secondFactor: proof)
        return (polled.map(Self.outcome), verdict)
    }

    /// For an unknown request, a used one and another client's.
    func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "The authentication request is invalid.", reason: reason)
    }

    private static func outcome(_ polled: ApprovalStore.Polled) -> FactorOutcome {
        switch polled {
        case .pending: .waiting(Polling(.pending, of: "request"))
        case .slowDown: .waiting(Polling(.slowDown, of: "request"))
        case .denied: .waiting(Polling(.denied, of: "request"))
        case .expired: .waiting(Polling(.expired, of: "request"))
        case .busy: .busy
        case .decided(let outcome): .decided(outcome)
        }
    }
}
