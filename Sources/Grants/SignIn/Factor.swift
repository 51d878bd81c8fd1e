public import Persistence

/// What proves who somebody is. It is consumed by the statement that opens the session.
///
/// ``SignIn`` takes it as ``Presented``: the token endpoint reads that from a form, a page has it already. ``SignIn``
/// then runs the steps from ``turn(of:_:)`` on, in the order in which they stand here.
public protocol Factor: Sendable {
    /// A factor as a request presents it, typed and bounded; no statement has seen it yet.
    associatedtype Presented: Sendable
    /// What is left to redeem after ``check(_:_:_:)``.
    associatedtype Checked: Sendable = Presented

    /// The grant that redeems it.
    var grantType: GrantType { get }
    /// Whether the realm offers it now.
    func isEnabled(in realm: Realm) -> Bool
    /// What a proof of possession that comes with it must be.
    var proofRules: DPoPRules { get }
    /// The highest authentication context that a sign-in by it can reach.
    var highestContext: AuthenticationContext { get }
    /// The one refusal for all that can be wrong with it; the reason is for the log.
    func refused(_ reason: String) -> TokenError
    /// Parameters that a token request must have. - Throws: `invalid_request`.
    func requireParameters(_ form: FormParameters) throws(TokenError)
    /// What a token request presents.
    /// - Returns: `nil` for what cannot be this factor: it is refused once the request's permits are taken.
    func read(_ form: FormParameters, _ context: RequestContext) -> Presented?
    /// Whether the identical request within a minute gets the session that it opened: it must name a handle that only
    /// who began the sign-in has.
    func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool
    /// When attempts at it take turns in this process.
    func turn(of presented: Presented, _ context: RequestContext) -> AttemptTurn
    /// Checks that need more than one statement. A factor without any redeems what was presented.
    /// - Parameter session: that the sign-in is to open, with what the factor proves as yet: nothing.
    func check(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, _ admission: inout Admission
    ) async throws -> Checked
    /// Authentication methods (RFC 8176): what it proves, never more.
    func amr(of checked: Checked) -> [String]
    /// Compares and, if it is right, consumes it and opens the session, in one round trip.
    ///
    /// When the account has a second factor, nothing is consumed until a call brings the proof of it.
    /// - Parameter permits: what must be granted first. Without one of them there is no outcome.
    func redeem(
        _ checked: Checked, _ context: RequestContext, opening session: NewSession, proof: SecondFactorProof?,
        permits: PermitRequest
    ) async throws(StoreError) -> (FactorOutcome?, PermitVerdict)
}

extension Factor {
    /// With the account's second factor.
    public var highestContext: AuthenticationContext { .twoFactors }

    /// By the realm's native-grants flag.
    public func isEnabled(in realm: Realm) -> Bool { realm.nativeGrantsEnabled }

    /// Most take any, or none.
    public var proofRules: DPoPRules { .standard }

    /// What has no handle may come from another than before.
    public func isRepeatable(_ form: FormParameters, _ context: RequestContext) -> Bool { false }
}

extension Factor where Checked == Presented {
    /// Nothing to check.
    public func check(
        _ presented: Presented, _ context: RequestContext, opening session: NewSession, _ admission: inout Admission
    ) async throws -> Presented { presented }
}

/// What the statement that redeems a factor says.
public enum FactorOutcome: Sendable {
    /// It was decided: signed in, refused, or asked for the second factor.
    case decided(SignInOutcome)
    /// Another transaction has the account's factors; nothing was counted or consumed.
    case busy
    /// The answer that somebody gives elsewhere has not come, or was no.
    case waiting(Polling)
}
