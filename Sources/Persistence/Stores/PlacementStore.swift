/// Where realms are.
public struct PlacementStore: Sendable {
    /// A realm that has rows in a cluster.
    public struct Listed: Sendable {
        public let id: UUIDValue
        public let slug: String
        public let isEnabled: Bool
        public let hosts: [String]
        /// here, leaving, left or arriving.
        public let placement: String
        /// The other cluster of a move.
        public let peer: String?
        /// Whether the rows of both clusters were found to be equal.
        public let isVerified: Bool
        public let users: Int
        public let sessions: Int
    }

    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The realms of this cluster.
    public func realms() async throws(StoreError) -> [Listed] {
        try await database.all(Self.calls.list)
    }

    struct Calls: Sendable {
        let placement = FunctionCall<String>("placement", ["realm"], effect: .readOnly, payer: .server)
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
