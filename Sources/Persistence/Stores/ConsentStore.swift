/// What users allowed clients.
public struct ConsentStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// What a user allowed one client.
    public struct Listed: Sendable {
        /// `client_id`.
        public let clientID: String
        /// The client's name.
        public let displayName: String
        /// Scope names.
        public let scope: [String]
        /// Seconds since the epoch.
        public let givenAt: Double
    }

    /// What a user allowed, newest first.
    public func list(realm: UUIDValue, user: UUIDValue) async throws(StoreError) -> [Listed] {
        try await database.all(Self.calls.list, ["realm": realm, "user": user])
    }

    /// Forgets what a session's user allowed a client, and ends the client's sessions of the user.
    /// - Returns: `false` when there was nothing.
    /// - Parameter client: the client's row key.
    public func revoke(
        realm: UUIDValue, session: UUIDValue, client: UUIDValue, source: String
    ) async throws(StoreError) -> Bool {
        try await database.one(
            Self.calls.revoke, ["realm": realm, "session": session, "client": client, "source": source])
    }

    struct Calls: Sendable {
        let list = FunctionCall<Listed>("list_consents", ["realm", "user"], effect: .readOnly) {
            (row) throws(StoreError) in
            Listed(
                clientID: try row("client_id"), displayName: try row("display_name"), scope: try row("scope"),
                givenAt: try row("given_at"))
        }
        let revoke = FunctionCall<Bool>(
            "revoke_own_consent", ["realm", "session", "client", "source"], effect: .once)
    }
    static let calls = Calls()
}
