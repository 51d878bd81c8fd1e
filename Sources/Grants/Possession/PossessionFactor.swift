public import Persistence

/// `urn:postern:possession`: a number that was just proven signs in the user whose it is.
public struct PossessionFactor: Factor {
    /// `urn:postern:possession`.
    public let grantType = GrantType.possession
    private let store: PossessionStore
    private let tokens: PossessionTokens

    public init(store: PossessionStore, tokens: PossessionTokens) {
        self.store = store
        self.tokens = tokens
    }

    /// A transaction, and how it was passed; not passed: empty.
    public struct Passed: Sendable {
        let authID: UUIDValue
        let by: String
    }

    /// By the realm's native-grants flag and its own switch.
    public func isEnabled(in realm: Realm) -> Bool { realm.nativeGrantsEnabled && realm.possession.isEnabled }

    /// `auth_token`.
    public func requireParameters(_ form: FormParameters) throws(TokenError) {
        guard form["auth_token"] != nil else { throw .missing("auth_token") }
    }

    /// `nil` without a proof, and for a text that is not a token of this realm.
    public func read(_ form: FormParameters, _ context: RequestContext) -> UUIDValue? {
        guard context.proof != nil else { return nil }
        return form["auth_token"].flatMap { tokens.authID(of: $0, realm: context.realm) }
    }

    /// The key of the proof is that of the transaction.
    public func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool { true }

    /// One turn for all redemptions of the transaction.
    public func turn(of authID: UUIDValue, _ context: RequestContext) -> AttemptTurn {
        .whenBusy("possession|\(context.realm.id)|\(authID)")
    }

    /// Reads how it was passed, which decides the authentication methods of the session.
    public func check(
        _ authID: UUIDValue, _ context: RequestContext, opening session: NewSession, _ admission: inout Admission
    ) async throws -> Passed {
        Passed(authID: authID, by: try await store.passedBy(realm: context.realm.id, authID: authID) ?? "")
    }

    /// Only what this server saw itself: it did not see what an operator or a backend reports.
    public func amr(of passed: Passed) -> [String] {
        switch passed.by {
        case "code", "link": MessageAddress.amr(by: .sms)
        case "key": ["pop"]
        default: ["urn:postern:external"]
        }
    }

    /// Spends the transaction and opens the session.
    public func redeem(
        _ passed: Passed, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict) {
        let (outcome, verdict) = try await store.redeem(
            realm: context.realm.id, client: context.client.key, permission: context.permission(for: grantType),
            authID: passed.authID, passedBy: passed.by, session: session, permits: permits, secondFactor: proof)
        return (outcome.map { $0.map(FactorOutcome.decided) ?? .busy }, verdict)
    }

    /// The answer for every transaction that does not sign a user in.
    public func refused(_ reason: String) -> TokenError {
        TokenError(.invalidGrant, "The possession check is not valid.", reason: reason)
    }
}
