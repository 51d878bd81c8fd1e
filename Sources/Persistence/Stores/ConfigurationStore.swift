/// Reads what administrators configured: host directory and realm snapshots.
public struct ConfigurationStore: Sendable {
    private let database: Database

    /// Reads through `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Every enabled realm's hosts: canonical domain to realm id.
    public func directory() async throws(StoreError) -> [String: UUIDValue] {
        let rows = try await database.query(Self.directory, []) { (row) throws(StoreError) in
            (try row.text(0), try row.uuid(1))
        }
        return Dictionary(rows) { first, _ in first }
    }

    /// The realm an administrator calls `slug`, enabled or not; `nil` when there is none.
    public func realmID(slug: String) async throws(StoreError) -> UUIDValue? {
        try await database.query(Self.realmID, [.text(slug)]) { (row) throws(StoreError) in try row.uuidOrNil(0) }.first
            ?? nil
    }

    /// One realm's configuration as JSON, `nil` when it is gone or disabled.
    public func realm(_ id: UUIDValue) async throws(StoreError) -> String? {
        try await database.query(Self.realm, [.uuid(id)]) { (row) throws(StoreError) in try row.textOrNil(0) }.first
            ?? nil
    }

    /// The number of every realm's last change, of disabled realms too.
    public func versions() async throws(StoreError) -> [UUIDValue: Int64] {
        let rows = try await database.query(Self.versions, []) { (row) throws(StoreError) in
            (try row.uuid(0), try row.bigint(1))
        }
        return Dictionary(rows) { first, _ in first }
    }

    private static let versions = Statement(
        name: "realm_versions", sql: "SELECT realm_id, config_version FROM postern.realm_versions()", effect: .readOnly)
    private static let directory = Statement(
        name: "directory", sql: "SELECT domain, realm_id FROM postern.directory()", effect: .readOnly)
    private static let realmID = Statement(
        name: "realm_id", sql: "SELECT postern.realm_id($1)", effect: .readOnly)
    private static let realm = Statement(
        name: "realm_config", sql: "SELECT postern.realm_config($1)::text", effect: .readOnly, payer: .server)
}
