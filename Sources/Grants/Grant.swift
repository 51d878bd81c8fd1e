public import Encoding
public import Persistence

/// A way to obtain tokens at the token endpoint (RFC 6749 §4.5): three facts and one verb.
public protocol Grant: Sendable {
    /// Its `grant_type`.
    var grantType: GrantType { get }
    /// Whether the realm offers it now: native grants and pages have switches.
    func isEnabled(in realm: Realm) -> Bool
    /// Whether the scope that is asked for will be the scope of the tokens. A refresh is judged by its family's scope,
    /// which only the statement knows.
    var knowsScope: Bool { get }
    /// Whether `scope` is ignored, because the scope was fixed before.
    var ignoresScope: Bool { get }
    /// The highest authentication context that it can reach; `nil`: it ignores `acr_values`.
    var highestContext: AuthenticationContext? { get }
    /// Whether it reads `max_age`.
    var takesMaximumAge: Bool { get }
    /// What a proof of possession must be; with rules of its own the grant needs one.
    var proofRules: DPoPRules { get }
    /// Adds the members of the discovery documents (RFC 8414 §2) that are the grant's own.
    func describe(in metadata: inout JSONWriter, for realm: Realm)
    /// Parameters that must be there; checked before anything is looked up.
    func requireParameters(_ form: FormParameters) throws(TokenError)
    /// Consumes what was presented and stores the session, in one database round trip.
    /// - Throws: `TokenError`, or what the database threw.
    func redeem(_ request: TokenRequest) async throws -> TokenResponse
}

extension Grant {
    /// Most do.
    public var knowsScope: Bool { true }
    /// Most read it.
    public var ignoresScope: Bool { false }

    /// Only a sign-in and a refresh have one.
    public var highestContext: AuthenticationContext? { nil }

    /// A sign-in is not old.
    public var takesMaximumAge: Bool { false }

    /// Most take any, or none.
    public var proofRules: DPoPRules { .standard }

    /// Most have none.
    public func describe(in metadata: inout JSONWriter, for realm: Realm) {}
}

/// A token request that passed every check that does not depend on an account.
public struct TokenRequest: Sendable {
    /// Tenant, client and source.
    let context: RequestContext
    let form: FormParameters
    /// `acr_values`, as far as the grant can reach them.
    let contexts: RequestedContexts
    let access: RequestedAccess
    /// `aud` of the tokens; empty for a grant that does not know its scope.
    let audience: [String]
    /// What the request calls itself, for the list of sessions; printable and bounded.
    let userAgent: String?

    var realm: Realm { context.realm }
    var client: Client { context.client }
    var source: String { context.source }
    var proof: ProofUse? { context.proof }
    /// The budgets of policy `token` it is counted against.
    var subjects: [RateLimiter.Subject] { context.subjects }
}

/// Who asks: the tenant, the client, and where the request came from.
public struct RequestContext: Sendable {
    /// The tenant, as the host shows it.
    public let realm: Realm
    /// The client that will get the tokens or the session.
    public let client: Client
    /// Where the request came from: an address, IPv6 by /64; the user's own when a trusted forwarder named it.
    public let source: String

    /// The proof of possession that came with the request.
    public var proof: ProofUse?
    /// Uses up the nonce of a device's proof, which signs in only once.
    public var nonce: ProofUse?
    /// The origin of the page that signs the user in; `nil` for a native sign-in.
    public let pageOrigin: String?
    /// Whether a page signs the user in, which its own switch and `gt:authorization_code` gate.
    public var isOnPage: Bool { pageOrigin != nil }

    public init(realm: Realm, client: Client, source: String, pageOrigin: String? = nil) {
        self.realm = realm
        self.client = client
        self.source = source
        self.pageOrigin = pageOrigin
    }

    /// The permission that the client needs to redeem a factor, checked again by the statement.
    func permission(for grantType: GrantType) -> String {
        (isOnPage ? .authorizationCode : grantType).permission
    }

    /// The budgets of policy `token` it is counted against.
    var subjects: [RateLimiter.Subject] {
        let subjects: [RateLimiter.Subject] = [.init(.source, source), .init(.client, client.clientID)]
        return realm.app.map { subjects + [.init(.app, $0.slug)] } ?? subjects
    }
}
