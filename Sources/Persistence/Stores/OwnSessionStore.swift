/// The sessions of one user, as that user sees and ends them.
public struct OwnSessionStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A live session; times are seconds since the epoch.
    public struct Listed: Sendable {
        /// The row's id, which is `sid`.
        public let id: UUIDValue
        /// `client_id`; `nil` for a browser that is signed in on pages.
        public let clientID: String?
        /// `User-Agent` of the request that opened it; `nil` when it said none.
        public let userAgent: String?
        /// Authentication methods (RFC 8176).
        public let amr: [String]
        /// `acr` that was chosen by `acr_values`; `nil`: derive it from ``amr``.
        public let acr: String?
        /// The sign-in.
        public let createdAt: Double
        /// The sign-in or the last refresh.
        public let lastUsedAt: Double
        /// Whether its refresh tokens are bound to a key (RFC 9449 §5).
        public let isBound: Bool
    }

    /// The user's live sessions, newest first.
    public func list(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> [Listed] {
        try await database.all(Self.calls.list, ["realm": realm, "user": user])
    }

    /// Ends a live session of the user. Asked again it says `false`, so a lost answer is in doubt and not repeated.
    /// - Parameter by: the session that asked.
    /// - Returns: `false` when the user has no live session of that id.
    public func end(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, by: UUIDValue, source: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.end, ["realm": realm, "user": user, "session": session, "by": by, "source": source])
    }

    /// Signs the user out everywhere: sessions, codes, links and handles end.
    /// - Parameters:
    ///   - by: the calling session.
    ///   - keepsCurrent: whether the calling session stays alive.
    /// - Returns: `false` when the calling session is not alive any more; nothing was done then.
    public func endAll(
        realm: UUIDValue, user: UUIDValue, by: UUIDValue, keepsCurrent: Bool, source: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.endAll, ["realm": realm, "user": user, "by": by, "keep": keepsCurrent, "source": source]) != nil
    }

    struct Calls: Sendable {
        let list = FunctionCall<Listed>("listed_sessions", ["realm", "user"], effect: .readOnly) {
            (row) throws(StoreError) in
            Listed(
                id: try row("id"), clientID: try row("client_id"), userAgent: try row("user_agent"),
                amr: try row("amr"), acr: try row("acr"), createdAt: try row("created_at"),
                lastUsedAt: try row("last_used_at"), isBound: try row("is_bound"))
        }
        let end = FunctionCall<Bool>(
            "end_any_own_session", ["realm", "user", "session", "by", "source"], effect: .once)
        let endAll = FunctionCall<Int?>("end_own_sessions", ["realm", "user", "by", "keep", "source"], effect: .once)
    }
    static let calls = Calls()
}
