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

    /// What every function takes that opens a session. The user agent goes with the source, and so do the context that
    /// was asked for, the App, the proof, and what a page opens.
    static let arguments = arguments(
        source: Argument("source", of: ["source", "user_agent", "acr", "level", "app", "proof"]) {
            "postern.with_dpop_proof(postern.opened_for(\($0[0]), \($0[1]), \($0[2]), \($0[3]), \($0[4])), \($0[5]))"
        })
    /// The source, with the user agent, the App and the proof.
    static let sourceArgument = Argument("source", of: ["source", "user_agent", "app", "proof"]) {
        "postern.with_dpop_proof(postern.opened_from(\($0[0]), \($0[1]), \($0[2])), \($0[3]))"
    }
    /// The same for a sign-in on a page.
    static let pageArguments = arguments(
        source: Argument("source", of: ["source", "user_agent", "page"]) {
            "postern.opened_on_page(\($0[0]), \($0[1]), \($0[2])::text::jsonb)"
        })

    private static func arguments(source: Argument) -> [Argument] {
        [
            "session", "token_salt", "refresh_hash", "scope", "resource", "amr", "access_lifetime", "refresh_lifetime",
            source, "server_key",
        ]
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

    func arguments(in realm: UUIDValue) -> Arguments {
        let session: Arguments = [
            "session": id, "token_salt": tokenSalt, "refresh_hash": refreshHash, "scope": scope, "resource": resources,
            "amr": amr, "access_lifetime": accessTokenLifetime, "refresh_lifetime": refreshTokenLifetime,
            "source": source, "user_agent": userAgent, "server_key": serverKey,
        ]
        guard let page else {
            return session + [
                "acr": context?.acr, "level": context?.level, "app": app, "proof": proof?.asText(in: realm),
            ]
        }
        return session + ["page": page.json]
    }
}
