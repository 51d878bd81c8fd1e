/// Brings the schema to what this binary needs: migrations once each, functions whenever their file changed.
///
/// Runners take turns by an advisory lock. Each migration is one transaction and is recorded with its checksum in
/// `postern.schema_migration`; all changed files of functions are applied in one transaction, in name order, and
/// recorded in `postern.schema_function`, with the number of their set in `postern.schema_range`.
///
/// Requests wait behind a statement that waits for a lock. So a migration waits for each lock for a moment only, ends
/// its transaction when it does not get one, and begins again a little later.
public struct Migrator: Sendable {
    private let configuration: DatabaseConfiguration
    private let migrations: [SQLFile]
    private let functions: [SQLFile]
    private let range: SchemaRange
    private let lockWait: LockWait
    private let facts: [String: MigrationFacts]

    /// - Parameters:
    ///   - conninfo: libpq connection string of a role that may create roles and schemas; for ``check()`` the
    ///     application's role is enough.
    ///   - migrations: `NNNN_what.sql`, in any order.
    ///   - functions: files that may be applied any number of times.
    ///   - range: the numbers of the binary that has these files.
    ///   - lockWait: how locks are waited for.
    public init(
        conninfo: String, migrations: [SQLFile] = SQLFile.migrations, functions: [SQLFile] = SQLFile.functions,
        range: SchemaRange = .own, lockWait: LockWait = LockWait()
    ) {
        self.init(
            conninfo: conninfo, migrations: migrations, functions: functions, range: range, lockWait: lockWait,
            facts: MigrationFacts.embedded)
    }

    /// - Parameter facts: what the migrations do, by their names.
    init(
        conninfo: String, migrations: [SQLFile], functions: [SQLFile], range: SchemaRange, lockWait: LockWait,
        facts: [String: MigrationFacts]
    ) {
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: 1)
        configuration.applicationName = "postern migrate"
        self.configuration = configuration
        self.migrations = migrations
        self.functions = functions
        self.range = range
        self.lockWait = lockWait
        self.facts = facts
    }

    /// Applies what is missing.
    /// - Parameter progress: told the name of each file before it is applied, and what is waited for.
    /// - Returns: the files applied.
    @discardableResult
    public func migrate(
        progress: @Sendable (String) -> Void = { _ in }
    ) async throws(MigrationError) -> [String] {
        let plan = try plan()
        return try await connected().migrate(plan, lockWait: lockWait, progress: progress)
    }

    /// Compares without changing anything.
    /// - Throws: when servers of this binary can never work on this database.
    public func standing() async throws(MigrationError) -> SchemaStanding {
        let plan = try plan()
        return try await connected().standing(plan)
    }

    /// Describes what ``migrate(progress:)`` would do, without changing anything.
    public func preview() async throws(MigrationError) -> MigrationPreview {
        let plan = try plan()
        return try await connected().preview(plan)
    }

    private func plan() throws(MigrationError) -> MigrationPlan {
        try MigrationPlan(migrations: migrations, functions: functions, range: range, facts: facts)
    }

    /// The newest migration that this binary knows.
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
