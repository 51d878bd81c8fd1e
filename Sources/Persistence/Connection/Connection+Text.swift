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
