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
    /// The proof that came with the request.
    public var proof: ProofUse?
    /// What `acr_values` of the request asked for; `nil`: nothing.
    public var context: Context?
    /// Whether id, salt and hash are derived from the request: an identical one gets the session again.
    public var isRepeatable = false

    /// The App on whose host the request came: its own switch counts.
    public var app: String?

    /// What `acr_values` means to the session.
    public struct Context: Sendable {
        let acr: String?
        let level: Int32

        /// - Parameters:
        ///   - acr: what the session will say; `nil`: its methods do not suffice.
        ///   - level: the least that will do (`postern.acr_level`).
        public init(acr: String?, level: Int32) {
            self.acr = acr
            self.level = level
        }
    }

    /// What a sign-in on a page opens in place of this session, whose id names the browser session then.
    public var page: PageSignIn?

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

    /// What every function takes that signs in: who asks, the limits, what is opened.
    static let signInArguments = [Caller.argument, PermitRequest.argument, argument]
    /// The same for a sign-in on a page.
    static let signInOnPageArguments = [Caller.argument, PermitRequest.argument, pageArgument]
    /// `postern.new_session`.
    static let argument = argument(page: .constant("page", "NULL"))
    /// The same with what a page opens.
    static let pageArgument = argument(page: PageSignIn.argument)

    private static func argument(page: Argument) -> Argument {
        .row(
            "new", as: "new_session",
            [
                .value("id", from: "session"), "token_salt", "refresh_hash", .value("scope", from: "new_scope"),
                .value("resource", from: "new_resource"), .value("amr", from: "new_amr"), "access_lifetime",
                "refresh_lifetime", "server_key", .value("acr", from: "new_acr"), "level", "is_repeatable", page,
            ])
    }

    /// For ``signInArguments``, or for ``signInOnPageArguments`` if there is a ``page``.
    func arguments(
        realm: UUIDValue, client: UUIDValue, permission: String, permits: PermitRequest
    ) -> Arguments {
        caller(realm: realm, client: client, permission: permission).arguments + permits.arguments + arguments
    }

    /// For ``argument``, or for ``pageArgument`` if there is a ``page``.
    var arguments: Arguments {
        let session: Arguments = [
            "session": id, "token_salt": tokenSalt, "refresh_hash": refreshHash, "new_scope": scope,
            "new_resource": resources, "new_amr": amr, "access_lifetime": accessTokenLifetime,
            "refresh_lifetime": refreshTokenLifetime, "server_key": serverKey, "new_acr": context?.acr,
            "level": context?.level, "is_repeatable": isRepeatable,
        ]
        guard let page else { return session }
        return session + page.arguments
    }

    /// Who opens it.
    func caller(realm: UUIDValue, client: UUIDValue, permission: String) -> Caller {
        Caller(
            realm: realm, client: client, permission: permission, source: source, userAgent: userAgent, app: app,
            proof: proof)
    }

    /// What a sign-in on a page opens: the session of a browser.
    /// - Parameter id: names the browser session, unless the browser has one already.
    public static func onPage(
        _ page: PageSignIn, id: UUIDValue, amr: [String], source: String, userAgent: String?, serverKey: [UInt8]
    ) -> NewSession {
        var session = NewSession(
            id: id, tokenSalt: randomBytes(16), refreshHash: nil, scope: [], resources: [], amr: amr,
            accessTokenLifetime: 0, refreshTokenLifetime: 0, source: source, serverKey: serverKey)
        session.userAgent = userAgent
        session.page = page
        return session
    }
}
