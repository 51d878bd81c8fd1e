/// Where realms are.
public struct PlacementStore: Sendable {
    /// A realm that has rows in a cluster.
    public struct Listed: Sendable {
        /// `realm.id`.
        public let id: UUIDValue
        /// The name administrators use.
        public let slug: String
        /// Whether it is switched on.
        public let isEnabled: Bool
        /// Its own and those of its Apps.
        public let hosts: [String]
        /// here, leaving, left or arriving.
        public let placement: String
        /// The other cluster of a move.
        public let peer: String?
        /// Whether the rows of both clusters were found to be equal.
        public let isVerified: Bool
        /// How many users it has.
        public let users: Int
        /// How many sessions it has, ended ones too.
        public let sessions: Int
    }

    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// The realms of this cluster.
    public func realms() async throws(StoreError) -> [Listed] {
        try await database.all(Self.calls.list)
    }

    struct Calls: Sendable {
        let list = FunctionCall<Listed>("list_realms", effect: .readOnly, payer: .server) {
            (row) throws(StoreError) in
            Listed(
                id: try row("realm_id"), slug: try row("slug"), isEnabled: try row("enabled"), hosts: try row("hosts"),
                placement: try row("placement"), peer: try row("peer"), isVerified: try row("is_verified"),
                users: try row("users"), sessions: try row("sessions"))
        }
    }
    static let calls = Calls()
}
