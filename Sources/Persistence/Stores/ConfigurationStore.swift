/// A host that a realm of one cluster has.
public struct ClaimedHost: Sendable, Equatable {
    /// The realm's id.
    public let realm: UUIDValue
    /// Since when, in seconds since 1970 by the clock of its cluster.
    public let claimedAt: Double
    /// `false`: the realm is disabled, or deleted and not erased yet.
    public let isServed: Bool

    /// A host of `realm`.
    public init(realm: UUIDValue, claimedAt: Double = 0, isServed: Bool = true) {
        self.realm = realm
        self.claimedAt = claimedAt
        self.isServed = isServed
    }
}

/// Reads what administrators configured: host directory and realm snapshots.
public struct ConfigurationStore: Sendable {
    private let database: Database

    /// Reads through `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Every realm's hosts by canonical domain.
    public func directory() async throws(StoreError) -> [String: ClaimedHost] {
        Dictionary(try await database.all(Self.calls.directory)) { first, _ in first }
    }

    /// The realm an administrator calls `slug`, enabled or not; `nil` when there is none.
    public func realmID(slug: String) async throws(StoreError) -> UUIDValue? {
        try await database.one(Self.calls.realmID, ["slug": slug])
    }

    /// One realm's configuration as JSON, `nil` when it is gone or disabled.
    public func realm(_ id: UUIDValue) async throws(StoreError) -> String? {
        try await database.one(Self.calls.realm, ["realm": id])
    }

    /// The number of every realm's last change, of disabled realms too.
    public func versions() async throws(StoreError) -> [UUIDValue: Int64] {
        Dictionary(try await database.all(Self.calls.versions)) { first, _ in first }
    }

    struct Calls: Sendable {
        let directory = FunctionCall<(String, ClaimedHost)>("directory", effect: .readOnly) {
            (row) throws(StoreError) in
            let host = ClaimedHost(
                realm: try row("realm_id"), claimedAt: try row("claimed_at"), isServed: try row("is_served"))
            return (try row("domain"), host)
        }
        let realmID = FunctionCall<UUIDValue?>("realm_id", ["slug"], effect: .readOnly)
        let realm = FunctionCall<String?>("realm_config", ["realm"], effect: .readOnly, payer: .server)
        let versions = FunctionCall<(UUIDValue, Int64)>("realm_versions", effect: .readOnly) {
            (row) throws(StoreError) in (try row("realm_id"), try row("config_version"))
        }
    }
    static let calls = Calls()
}
