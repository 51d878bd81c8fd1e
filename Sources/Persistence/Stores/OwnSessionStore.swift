/// The sessions of one user, as that user sees and ends them.
public struct OwnSessionStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// A live session; times are seconds since the epoch.
    public struct Listed: Sendable {
        /// The row's id, which is `sid`.
        public let id: UUIDValue
        /// `client_id`.
        public let clientID: String
        /// `User-Agent` of the request that opened it; `nil` when it said none.
        public let userAgent: String?
        /// The sign-in.
        public let createdAt: Double
        /// The sign-in or the last refresh.
        public let lastUsedAt: Double
    }

    /// The user's live sessions, newest first.
    public func list(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> [Listed] {
        try await database.query(Self.list, [.uuid(realm), .uuid(user)]) { (row) throws(StoreError) in
            Listed(
                id: try row.uuid(0), clientID: try row.text(1), userAgent: try row.textOrNil(2),
                createdAt: try row.double(3), lastUsedAt: try row.double(4))
        }
    }

    /// Ends a live session of the user. Asked again it says `false`, so a lost answer is in doubt and not repeated.
    /// - Parameter by: the session that asked.
    /// - Returns: `false` when the user has no live session of that id.
    public func end(
        realm: UUIDValue, user: UUIDValue, session: UUIDValue, by: UUIDValue, source: String
    ) async throws(StoreError) -> Bool {
        try await database.query(
            Self.end, [.uuid(realm), .uuid(user), .uuid(session), .uuid(by), .text(source)]
        ) { (row) throws(StoreError) in try row.bool(0) }.first ?? false
    }

    /// Signs the user out everywhere: sessions, codes, links and handles end.
    /// - Parameters:
    ///   - by: the calling session.
    ///   - keepsCurrent: whether the calling session stays alive.
    /// - Returns: `false` when the calling session is not alive any more; nothing was done then.
    public func endAll(
        realm: UUIDValue, user: UUIDValue, by: UUIDValue, keepsCurrent: Bool, source: String
    ) async throws(StoreError) -> Bool {
        try await database.query(
            Self.endAll, [.uuid(realm), .uuid(user), .uuid(by), .bool(keepsCurrent), .text(source)]
        ) { (row) throws(StoreError) in try row.intOrNil(0) != nil }.first ?? false
    }

    private static let list = Statement(
        name: "live_sessions",
        sql: "SELECT id, client_id, user_agent, created_at, last_used_at FROM postern.live_sessions($1, $2)",
        effect: .readOnly)
    private static let endAll = Statement(
        name: "end_own_sessions", sql: "SELECT postern.end_own_sessions($1, $2, $3, $4, $5)", effect: .once)
    private static let end = Statement(
        name: "end_own_session", sql: "SELECT postern.end_own_session($1, $2, $3, $4, $5)", effect: .once)
}
