/// One session of an operator's command, without time limits, in one cluster.
struct Superuser: Sendable {
    let cluster: String
    private let connection: Connection

    /// How long a statement that must have a lock is tried.
    private static let patience = Duration.seconds(180)

    init(cluster: String, conninfo: String) async throws {
        self.cluster = cluster
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: 1)
        configuration.applicationName = "postern realm"
        guard let connection = Connection(configuration) else { throw StatementFailure("no thread for a connection") }
        do {
            try await connection.connect(timeouts: false)
        } catch {
            throw StatementFailure("cluster \(cluster): \(error.message)")
        }
        self.connection = connection
    }

    /// The rows of the last statement as text, NULL as the empty string.
    @discardableResult
    func rows(_ sql: String) async throws -> [[String]] {
        do {
            return try await connection.textRows(sql)
        } catch {
            throw StatementFailure("cluster \(cluster): \(error.description)", sqlstate: error.sqlstate)
        }
    }

    /// The only value. - Throws: when there is none.
    func value(_ sql: String) async throws -> String {
        guard let value = try await rows(sql).first?.first else {
            throw StatementFailure("cluster \(cluster): no row")
        }
        return value
    }

    /// Runs it again while another transaction holds what it needs.
    func patiently(_ sql: String) async throws {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            do {
                try await rows(sql)
                return
            } catch let error as StatementFailure
                where ["55P03", "40P01"].contains(error.sqlstate) && ContinuousClock.now < deadline
            {
                try await Task.sleep(for: .milliseconds(Int64.random(in: 20...100)))
            }
        }
    }
}

/// A text as an SQL literal.
func literal(_ text: String) -> String {
    let quoted = text.replacing("'", with: "''")
    return text.contains("\\") ? " E'\(quoted.replacing("\\", with: "\\\\"))'" : "'\(quoted)'"
}
