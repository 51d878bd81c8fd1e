/// Reads what administrators configured: host directory and realm snapshots.
public struct ConfigurationStore: Sendable {
    private let database: Database

    /// Reads through `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Every enabled realm's hosts: canonical domain to realm id.
    public func directory() async throws(StoreError) -> [String: UUIDValue] {
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
        let directory = FunctionCall<(String, UUIDValue)>("directory", effect: .readOnly) { (row) throws(StoreError) in
            (try row("domain"), try row("realm_id"))
        }
        let realmID = FunctionCall<UUIDValue?>("realm_id", ["slug"], effect: .readOnly)
        let realm = FunctionCall<String?>("realm_config", ["realm"], effect: .readOnly, payer: .server)
        let versions = FunctionCall<(UUIDValue, Int64)>("realm_versions", effect: .readOnly) {
            (row) throws(StoreError) in (try row("realm_id"), try row("config_version"))
        }
    }
    static let calls = Calls()
}
