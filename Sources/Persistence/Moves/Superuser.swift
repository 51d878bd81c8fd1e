import CLibPQ

/// What PostgreSQL answered a command that an operator started. For operators.
public struct StatementFailure: Error, CustomStringConvertible {
    /// `nil` when there is no answer: the connection could not be made, or was lost.
    public let sqlstate: String?
    /// What happened.
    public let description: String
    /// Where in the text the fault is.
    let position: Int?

    init(_ description: String, sqlstate: String? = nil, position: Int? = nil) {
        self.description = description
        self.sqlstate = sqlstate
        self.position = position
    }
}

/// One session of an operator's command, without time limits, in one cluster.
struct Superuser: Sendable {
    let cluster: String
    private let connection: Connection

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
        for _ in 0..<100 {
            do {
                try await rows(sql)
                return
            } catch let error as StatementFailure where ["55P03", "40P01"].contains(error.sqlstate) {
                try await Task.sleep(for: .milliseconds(Int64.random(in: 20...100)))
            }
        }
        try await rows(sql)
    }
}

/// A text as an SQL literal.
func literal(_ text: String) -> String {
    let quoted = text.replacing("'", with: "''")
    return text.contains("\\") ? " E'\(quoted.replacing("\\", with: "\\\\"))'" : "'\(quoted)'"
}

extension Connection {
    /// Runs SQL, as long as it takes, and returns the rows of its last statement as text.
    func textRows(_ sql: String) throws(StatementFailure) -> [[String]] {
        let result: ResultHandle
        do {
            result = try simpleQuery(sql, within: .seconds(24 * 60 * 60))
        } catch {
            disconnect()
            throw StatementFailure("the connection was lost")
        }
        guard result.isSuccess else {
            guard !isTerminated else { throw StatementFailure("the connection was lost") }
            let hint = result.hint.map { " (\($0))" } ?? ""
            throw StatementFailure(
                (result.message ?? "refused") + hint, sqlstate: result.sqlstate ?? "unknown", position: result.position)
        }
        let pointer = result.pointer
        let columnCount = PQnfields(pointer)
        return (0..<result.rowCount).map { row in
            (0..<columnCount).map { column in PQgetvalue(pointer, row, column).map { String(cString: $0) } ?? "" }
        }
    }
}
