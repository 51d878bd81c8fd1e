/// Brings the schema to what this binary needs: migrations once each, functions whenever their file changed.
///
/// Runners take turns by an advisory lock. Each migration is one transaction and is recorded with its checksum in
/// `postern.schema_migration`; all changed files of functions are applied in one transaction, in name order, and
/// recorded in `postern.schema_function`.
public struct Migrator: Sendable {
    private let configuration: DatabaseConfiguration
    private let migrations: [SQLFile]
    private let functions: [SQLFile]

    /// - Parameters:
    ///   - conninfo: libpq connection string of a role that may create roles and schemas; for ``check()`` the
    ///     application's role is enough.
    ///   - migrations: `NNNN_what.sql`, in any order.
    ///   - functions: files that may be applied any number of times.
    public init(
        conninfo: String, migrations: [SQLFile] = SQLFile.migrations, functions: [SQLFile] = SQLFile.functions
    ) {
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: 1)
        configuration.applicationName = "postern migrate"
        self.configuration = configuration
        self.migrations = migrations
        self.functions = functions
    }

    /// Applies what is missing.
    /// - Parameter progress: told the name of each file before it is applied.
    /// - Returns: the files applied.
    @discardableResult
    public func migrate(
        progress: @Sendable (String) -> Void = { _ in }
    ) async throws(MigrationError) -> [String] {
        let plan = try MigrationPlan(migrations: migrations, functions: functions)
        return try await connected().migrate(plan, progress: progress)
    }

    /// Compares without changing anything.
    /// - Returns: the files that ``migrate(progress:)`` would apply; none when the schema fits this binary.
    public func check() async throws(MigrationError) -> [String] {
        let plan = try MigrationPlan(migrations: migrations, functions: functions)
        return try await connected().pending(plan).map(\.name)
    }

    /// The newest migration this binary knows, as `postern.schema_version()` answers when the database fits.
    public static let schemaVersion: Int32 = SQLFile.migrations.compactMap(\.version).max() ?? 0

    private func connected() async throws(MigrationError) -> Connection {
        guard let connection = Connection(configuration) else { throw .cannotConnect("no thread for a connection") }
        do {
            try await connection.connect(timeouts: false)
        } catch {
            throw .cannotConnect(error.message)
        }
        return connection
    }
}
