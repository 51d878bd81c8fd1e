import Logging
import Persistence
import TestSupport

/// The cluster that most suites share; those that stop or kill it have one of their own.
enum Shared {
    static let postgres = Result { try ThrowawayPostgres() }
}

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// Runs `body` with an open database of its own.
func withDatabase<R: Sendable>(
    on postgres: ThrowawayPostgres? = nil, connections: Int = 4,
    configure: (inout DatabaseConfiguration) -> Void = { _ in },
    _ body: (Database, DatabaseConfiguration) async throws -> R
) async throws -> R {
    let postgres = try postgres ?? Shared.postgres.get()
    let name = try postgres.createDatabase()
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
    return try await body(database)
}
