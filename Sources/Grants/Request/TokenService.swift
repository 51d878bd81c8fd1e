public import Persistence

/// A token request that passed every check that does not depend on an account.
public struct TokenRequest: Sendable {
    let realm: Realm
    let client: Client
    let form: FormParameters
    let access: RequestedAccess
    /// Where it came from: an address, IPv6 by /64; the user's own when a trusted forwarder named it.
    let source: String
    /// What the request calls itself, for the list of sessions; printable and bounded.
    let userAgent: String?

    /// The budgets of policy `token` it is counted against.
    var subjects: [RateLimiter.Subject] {
        let subjects: [RateLimiter.Subject] = [.init(.source, source), .init(.client, client.clientID)]
        return realm.app.map { subjects + [.init(.app, $0.slug)] } ?? subjects
    }
}

/// A way to obtain tokens at the token endpoint (RFC 6749 §4.5): three facts and one verb.
public protocol Grant: Sendable {
    /// Its `grant_type`.
    var grantType: GrantType { get }
    /// Whether the realm's native-grants flag gates it.
    var isNative: Bool { get }
    /// Parameters that must be there; checked before anything is looked up.
    func requireParameters(_ form: FormParameters) throws(TokenError)
    /// Consumes what was presented and stores the session, in one database round trip.
    /// - Throws: `TokenError`, or what the database threw.
    func redeem(_ request: TokenRequest) async throws -> TokenResponse
}

/// The token endpoint's dispatcher. The order of checks is the source order of
/// ``token(_:credentials:realm:source:userAgent:)``.
public struct TokenService: Sendable {
    private let grants: [GrantType: any Grant]
    private let clients: ClientAuthenticator
    private let databaseClock: DatabaseClock

    /// Two grants with one name stop the start, not a request.
    /// - Parameter databaseClock: a node whose clock is wrong refuses before a factor is consumed.
    public init(_ grants: [any Grant], clients: ClientAuthenticator, databaseClock: DatabaseClock) {
        self.clients = clients
        self.databaseClock = databaseClock
        self.grants = Dictionary(uniqueKeysWithValues: grants.map { ($0.grantType, $0) })
    }

    /// `grant_types_supported` for a realm: native grants only while the realm has them on.
    public func grantTypes(for realm: Realm) -> [String] {
        grants.values.filter { realm.nativeGrantsEnabled || !$0.isNative }.map(\.grantType.rawValue).sorted()
    }

    /// Whether a wire value names a registered grant.
    public func knows(_ grantType: String) -> Bool {
        grants[GrantType(rawValue: grantType)] != nil
    }

    /// Runs all checks that follow the HTTP layer's (method, content type, body size, form syntax), then redeems.
    public func token(
        _ form: FormParameters, credentials: ClientCredentials, realm: Realm, source: String,
        userAgent: String? = nil
    ) async throws(TokenError) -> TokenResponse {
        guard let grantType = form["grant_type"] else { throw .missing("grant_type") }
        guard let grant = grants[GrantType(rawValue: grantType)] else {
            throw TokenError(.unsupportedGrantType, "The grant type is not supported.")
        }
        guard !databaseClock.isWrong else {
            throw .unavailable("the process clock differs from the database's by more than 60 s")
        }
        let client = try await clients.authenticate(form, credentials, realm: realm, source: source)
        guard client.mayUse(grant.grantType) else {
            throw TokenError(.unauthorizedClient, "The client may not use this grant type.")
        }
        guard realm.nativeGrantsEnabled || !grant.isNative else {
            throw TokenError(.unsupportedGrantType, "The grant type is not supported.", reason: "realm flag")
        }
        try realm.requireAdmission(of: client)
        // Fail closed: a client that must prove possession gets no bearer tokens while DPoP is not offered.
        guard !client.requiresDPoP else {
            throw TokenError(
                .invalidRequest, "The client must use DPoP, which this server does not offer yet.",
                reason: "require_dpop")
        }
        let access = try RequestedAccess(form, realm: realm, client: client)
        // A refresh is judged by its family's scope, which only the statement knows.
        if grant.grantType != .refreshToken { _ = try access.audience(of: access.scope, realm: realm, client: client) }
        try grant.requireParameters(form)
        let request = TokenRequest(
            realm: realm, client: client, form: form, access: access,
            source: credentials.forwardedSource(by: client) ?? source, userAgent: userAgent)
        do {
            return try await grant.redeem(request)
        } catch {
            throw TokenError(error)
        }
    }
}
