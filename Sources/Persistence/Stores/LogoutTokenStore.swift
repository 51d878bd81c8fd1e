/// Logout tokens that wait to be sent (OpenID Connect Back-Channel Logout 1.0).
public struct LogoutTokenStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// A session that ended, and the client to be told.
    public struct Due: Sendable {
        /// The tenant.
        public let realm: UUIDValue
        /// The row's id, which is `jti` of every try.
        public let id: UUIDValue
        /// The client's row key.
        public let client: UUIDValue
        /// `client_id`.
        public let clientID: String
        /// `sub`.
        public let user: UUIDValue
        /// `sid`.
        public let session: UUIDValue
        /// Where it is sent.
        public let uri: String
        /// Tries, this one included.
        public let attempts: Int
    }

    /// Takes what is due, on a lease of a minute; clients take turns.
    /// - Parameters:
    ///   - share: calls of one client at a time.
    ///   - busy: the client of each call that this process makes now.
    public func take(_ limit: Int32, share: Int32, busy: [UUIDValue]) async throws(StoreError) -> [Due] {
        try await database.all(Self.calls.take, ["limit": limit, "share": share, "busy": busy])
    }

    /// Records how a try went. - Parameter failure: a class, never a text of the receiver; `nil`: accepted.
    public func settle(_ due: Due, failure: String?, retryAfter seconds: Int32) async throws(StoreError) {
        _ = try await database.all(
            Self.calls.settle, ["realm": due.realm, "id": due.id, "error": failure, "wait": seconds])
    }

    struct Calls: Sendable {
        let take = FunctionCall<Due>(
            "take_due_logout_tokens", ["limit", "share", "busy"], effect: .once, payer: .server
        ) { (row) throws(StoreError) in
            Due(
                realm: try row("realm_id"), id: try row("id"), client: try row("client"),
                clientID: try row("client_id"), user: try row("user_id"), session: try row("session"),
                uri: try row("uri"), attempts: try row("attempts"))
        }
        let settle = FunctionCall<Void>("settle_logout_token", ["realm", "id", "error", "wait"], effect: .idempotent)
    }
    static let calls = Calls()
}
