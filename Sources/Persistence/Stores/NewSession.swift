/// The session that a successful sign-in opens, made before the statement that decides: only hashes travel.
public struct NewSession: Sendable {
    /// The row's id.
    public let id: UUIDValue
    /// 16 random bytes that key the session's reference access tokens.
    public let tokenSalt: [UInt8]
    /// SHA-256 of the first refresh token; `nil` without `offline_access`.
    public let refreshHash: [UInt8]?
    /// Scope names.
    public let scope: [String]
    /// Resources (RFC 8707).
    public let resources: [String]
    /// Authentication methods (RFC 8176).
    public let amr: [String]
    /// Seconds; without a refresh token the session lives no longer.
    public let accessTokenLifetime: Int32
    /// Seconds.
    public let refreshTokenLifetime: Int32
    /// Where the request came from, for audit.
    public let source: String
    /// Id of the key-file line that the refresh token is made under, 4 bytes.
    public let serverKey: [UInt8]

    /// `User-Agent` of the request, for the person's list of sessions: at most 256 characters.
    public var userAgent: String?

    /// Takes the parts as they are.
    public init(
        id: UUIDValue, tokenSalt: [UInt8], refreshHash: [UInt8]?, scope: [String], resources: [String], amr: [String],
        accessTokenLifetime: Int32, refreshTokenLifetime: Int32, source: String,
        serverKey: [UInt8]
    ) {
        self.id = id
        self.tokenSalt = tokenSalt
        self.refreshHash = refreshHash
        self.scope = scope
        self.resources = resources
        self.amr = amr
        self.accessTokenLifetime = accessTokenLifetime
        self.refreshTokenLifetime = refreshTokenLifetime
        self.source = source
        self.serverKey = serverKey
    }

    /// In the order in which every function that opens a session takes them.
    var parameters: [Parameter] {
        [
            .uuid(id), .bytes(tokenSalt), refreshHash.map { .bytes($0) } ?? .null, .texts(scope), .texts(resources),
            .texts(amr),
            .int(accessTokenLifetime), .int(refreshTokenLifetime), .text(source),
        ]
    }

    /// What `postern.opened_from` takes beside the source; the last parameter of every statement that opens a session.
    var userAgentParameter: Parameter { userAgent.map { .text($0) } ?? .null }

    /// ``parameters``, and last the line of the key file that the session depends on (`p_server_key`).
    var parametersWithKey: [Parameter] { parameters + [.bytes(serverKey)] }
}

/// The outcome of a presented factor.
public enum SignInOutcome: Sendable {
    /// `now` and `sessionExpiresAt` are seconds since the epoch by the database clock.
    case signedIn(user: UUIDValue, now: Double, sessionExpiresAt: Double)
    /// The reason is for logs.
    case refused(String)
    case limited
    /// The first factor is right and still live; the account has a second one.
    case secondFactor(SecondFactorPrompt)
    /// The first factor is right and still live; the second one is wrong, and counted.
    case secondFactorWrong
    /// The account's second factor changed between two calls; nothing was consumed.
    case secondFactorGone
}
