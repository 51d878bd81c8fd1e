import Logging
import Persistence

/// One connection for a command that asks the database something and ends.
enum OneOffDatabase {
    /// Connects, lends the database and disconnects. The body runs again while the first connection is being made.
    /// - Throws: what the body throws, or ``CommandFailure`` when the database cannot be reached.
    static func use<Value: Sendable>(
        _ conninfo: String, statementTimeout: Duration = .seconds(5), _ body: @Sendable (Database) async throws -> Value
    ) async throws -> Value {
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: 1)
        configuration.statementTimeout = statementTimeout
        let database = Database(configuration: configuration, logger: Logger(label: "postern"))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await database.run() }
            defer { tasks.cancelAll() }
            for _ in 0..<20 {
                do {
                    return try await body(database)
                } catch StoreError.unavailable {
                    try await Task.sleep(for: .milliseconds(100))
                }
            }
            throw CommandFailure("the database cannot be reached")
        }
    }
}
