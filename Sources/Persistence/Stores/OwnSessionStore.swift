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
        /// The sign-in.
        public let createdAt: Double
        /// The sign-in or the last refresh.
        public let lastUsedAt: Double
    }

    /// The user's live sessions, newest first.
    public func list(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> [Listed] {
        try await database.query(Self.list, [.uuid(realm), .uuid(user)]) { (row) throws(StoreError) in
            Listed(
                id: try row.uuid(0), clientID: try row.text(1), createdAt: try row.double(2),
                lastUsedAt: try row.double(3))
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

    private static let list = Statement(
        name: "own_sessions",
        sql: "SELECT id, client_id, created_at, last_used_at FROM postern.own_sessions($1, $2)", effect: .readOnly)
    private static let end = Statement(
        name: "end_own_session", sql: "SELECT postern.end_own_session($1, $2, $3, $4, $5)", effect: .once)
}
