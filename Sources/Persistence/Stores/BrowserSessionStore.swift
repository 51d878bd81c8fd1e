/// Signed-in browsers, and the authorization codes that they are given.
public struct BrowserSessionStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A live browser session and its user. Times are seconds since the epoch.
    public struct Live: Sendable {
        /// The session's id, which also names the browser as a known device.
        public let id: UUIDValue
        /// The user.
        public let user: UUIDValue
        /// What names the account to its user: the address that the request wants proven, the e-mail address, or the
        /// phone number.
        public let address: String?
        /// Given name.
        public let firstName: String?
        /// Family name.
        public let lastName: String?
        /// Authentication methods (RFC 8176) of all proofs in this browser session.
        public let amr: [String]
        /// The latest proof.
        public let authTime: Double
        /// When an e-mail address was last proven in it.
        public let emailProvedAt: Double?
        /// When a phone number was last proven in it.
        public let phoneProvedAt: Double?
        /// When it ends, however much it is used.
        public let expiresAt: Double
        /// The database clock.
        public let now: Double
    }

    /// The answer to an authorization request, and who is signed in.
    public struct Standing: Sendable {
        /// What was done, or what is due.
        public let outcome: PageOutcome
        /// `nil` without a live session.
        public let session: Live?
        /// Whether the browser is to get its cookie again, for as long as the session lives.
        public let isCookieDue: Bool
    }

    /// Who is signed in in a browser, and the answer to its authorization request, in one statement.
    /// - Parameters:
    ///   - cookieHash: SHA-256 of the session cookie.
    ///   - host: the host that the browser asked.
    ///   - request: `nil`: only who it is.
    public func answer(
        realm: UUIDValue, cookieHash: [UInt8], host: String, request: AuthorizationCodeRequest?
    ) async throws(StoreError) -> Standing {
        try await database.one(
            Self.calls.answer, ["realm": realm, "cookie_hash": cookieHash, "host": host] + request.arguments)
    }

    /// Whose browser session a cookie names or named, live or ended: the account knows this browser.
    public func device(
        realm: UUIDValue, cookieHash: [UInt8], host: String
    ) async throws(StoreError) -> (user: UUIDValue, session: UUIDValue)? {
        try await database.one(
            Self.calls.device, ["realm": realm, "cookie_hash": cookieHash, "host": host])
    }

    /// Makes the account of a proven address with the names that a page asked for, and signs in, once.
    /// - Parameters:
    ///   - client: the client's row key, of the request that proved the address.
    ///   - handle: the handle of the proof.
    ///   - session: with its ``NewSession/page``.
    public func register(
        realm: UUIDValue, client: UUIDValue, handle: [UInt8], firstName: String?, lastName: String?,
        session: NewSession
    ) async throws(StoreError) -> SignInOutcome {
        try await database.one(
            Self.calls.register,
            session.caller(realm: realm, client: client, permission: AuthorizationCodeStore.permission).arguments
                + session.arguments + ["handle": handle, "first": firstName, "last": lastName])
    }

    /// Ends a browser session, and the sessions opened through it that lack `offline_access`.
    /// - Parameters:
    ///   - hint: `sid` and `sub` of an ID token of ours; its session ends as well.
    ///   - isConfirmed: the user said yes on the page.
    /// - Returns: `false`: the user has to be asked first, and nothing was done.
    public func signOut(
        realm: UUIDValue, cookieHash: [UInt8]?, host: String, hint: (session: UUIDValue, user: UUIDValue)?,
        isConfirmed: Bool, source: String
    ) async throws(StoreError) -> (isSignedOut: Bool, user: UUIDValue?) {
        try await database.one(
            Self.calls.signOut,
            [
                "realm": realm, "cookie_hash": cookieHash, "host": host, "hint_session": hint?.session,
                "hint_user": hint?.user, "confirmed": isConfirmed, "source": source,
            ])
    }
}

extension BrowserSessionStore {
    struct Calls: Sendable {
        let answer = FunctionCall<Standing>(
            "continue_browser_session",
            ["realm", "cookie_hash", "host", AuthorizationCodeRequest.argument], effect: .once
        ) { columns in
            let outcome = columns("outcome", PageOutcome.self), session = columns("session", UUIDValue?.self)
            let isCookieDue = columns("cookie_due", Bool.self)
            let live = columns.record { (row) throws(StoreError) in
                Live(
                    id: try row("session"), user: try row("user_id"), address: try row("email"),
                    firstName: try row("first_name"), lastName: try row("last_name"), amr: try row("amr"),
                    authTime: try row("auth_time"), emailProvedAt: try row("email_proved_at"),
                    phoneProvedAt: try row("phone_proved_at"), expiresAt: try row("expires_at"), now: try row("db_now"))
            }
            return { (row) throws(StoreError) in
                Standing(
                    outcome: try row[outcome], session: try row[session] == nil ? nil : try live(row),
                    isCookieDue: try row[isCookieDue])
            }
        }
        let device = FunctionCall<(user: UUIDValue, session: UUIDValue)?>(
            "browser_device", ["realm", "cookie_hash", "host"], effect: .idempotent
        ) { columns in
            let session = columns("session", UUIDValue?.self), user = columns("user_id", UUIDValue?.self)
            return { (row) throws(StoreError) in
                guard let session = try row[session], let user = try row[user] else { return nil }
                return (user, session)
            }
        }
        let register = FunctionCall<SignInOutcome>(
            "register_on_page",
            [Caller.argument, NewSession.pageArgument, "handle", "first", "last"], effect: .once,
            returns: SignInOutcome.columns)
        let signOut = FunctionCall<(isSignedOut: Bool, user: UUIDValue?)>(
            "sign_out_browser",
            ["realm", "cookie_hash", "host", "hint_session", "hint_user", "confirmed", "source"], effect: .idempotent
        ) { (row) throws(StoreError) in
            (isSignedOut: try (row("outcome") as String) == "signed_out", user: try row("user_id"))
        }
    }
    static let calls = Calls()
}
