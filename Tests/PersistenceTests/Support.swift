import Logging
import Persistence
import TestSupport
import Testing

/// Tests against a server, one at a time: they measure time, and two cores do not run twenty databases.
@Suite("Database", .serialized)
enum DatabaseTests {}

/// The cluster that most suites share; those that stop or kill it have one of their own.
enum Shared {
    static let postgres = Task { try await ThrowawayPostgres() }
}

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// Runs `body` with an open database of its own.
func withDatabase<R: Sendable>(
    on postgres: ThrowawayPostgres? = nil, connections: Int = 4,
    configure: (inout DatabaseConfiguration) -> Void = { _ in },
    _ body: (Database, DatabaseConfiguration) async throws -> R
) async throws -> R {
    let shared = try await Shared.postgres.value
    let postgres = postgres ?? shared
    let name = try await postgres.createDatabase()
    var configuration = DatabaseConfiguration(conninfo: postgres.conninfo(database: name), connections: connections)
    configure(&configuration)
    return try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
        try await body(database, configuration)
    }
}

/// Runs `body` while `database` runs.
func withRunning<R: Sendable>(_ database: Database, _ body: (Database) async throws -> R) async throws -> R {
    let running = Task { await database.run() }
    defer { running.cancel() }
    _ = await time { database.poolCounts.free > 0 && database.poolCounts.connecting == 0 }
    return try await body(database)
}

/// A one-off statement; the text is its name, so that two never share one.
func sql(_ text: String, _ effect: Statement.Effect = .readOnly) -> Statement {
    Statement(
        name: "s\(text.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 })",
        sql: text, effect: effect)
}

extension Database {
    /// One bigint.
    func number(_ text: String, _ effect: Statement.Effect = .readOnly) async throws(StoreError) -> Int64? {
        try await query(sql(text, effect), []) { (row) throws(StoreError) in try row.bigint(0) }.first
    }

    /// One text.
    func text(_ text: String, _ effect: Statement.Effect = .readOnly) async throws(StoreError) -> String? {
        try await query(sql(text, effect), []) { (row) throws(StoreError) in try row.text(0) }.first
    }

    /// No result.
    func run(_ text: String) async throws(StoreError) {
        try await execute(sql(text, .once), [])
    }
}

/// Polls until `condition` holds. - Returns: how long that took, `nil` when it did not come true in time.
func time(
    until condition: () async -> Bool, within limit: Duration = .seconds(10)
) async -> Duration? {
    let start = ContinuousClock.now
    while ContinuousClock.now - start < limit {
        if await condition() { return ContinuousClock.now - start }
        try? await Task.sleep(for: .milliseconds(2))
    }
    return nil
}
