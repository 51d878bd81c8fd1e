import Logging
public import Persistence

/// A database of its own with the schema of this build, and the application's connections to it.
///
/// All of them are copies of one migrated database in one cluster, which costs a tenth of a migration.
public struct MigratedDatabase: Sendable {
    /// Runs; as the application's role, so that row security holds.
    public let database: Database
    /// Where ``database`` connects to.
    public let configuration: DatabaseConfiguration
    private let postgres: ThrowawayPostgres
    private let name: String

    private static let template = Task {
        let postgres = try await ThrowawayPostgres()
        let name = try await postgres.createDatabase()
        try await Migrator(conninfo: postgres.conninfo(database: name)).migrate()
        try await postgres.psql("CREATE ROLE application LOGIN IN ROLE postern_app")
        return (postgres, name)
    }

    /// Makes the copy and connects.
    public init(connections: Int = 4) async throws {
        let (postgres, template) = try await Self.template.value
        self.postgres = postgres
        name = try await postgres.createDatabase(from: template)
        var configuration = DatabaseConfiguration(
            conninfo: postgres.conninfo(database: name, user: "application"), connections: connections)
        // Many tests run at once: a wait is no failure.
        configuration.checkoutTimeout = .seconds(30)
        configuration.lockTimeout = .seconds(10)
        self.configuration = configuration
        let database = Database(
            configuration: configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        self.database = database
        // For the rest of the process, as the cluster.
        Task { await database.run() }
        try await eventually { database.poolCounts.free > 0 && database.poolCounts.connecting == 0 }
    }

    /// Runs SQL as an administrator. - Returns: the rows, fields separated by `|`.
    @discardableResult
    public func administer(_ sql: String) async throws -> [String] {
        try await postgres.psql(sql, database: name)
    }
}
