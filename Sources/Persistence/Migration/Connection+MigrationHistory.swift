import CLibPQ

/// What the runner reads.
extension Connection {
    func history() throws(MigrationError) -> MigrationPlan.History {
        var history = MigrationPlan.History()
        if try exists("schema_migration") {
            for row in try rows(
                "SELECT version, name, encode(checksum, 'hex') FROM postern.schema_migration ORDER BY version")
            {
                guard row.count == 3, let version = Int32(row[0]) else { continue }
                history.migrations.append(.init(version: version, name: row[1], checksum: row[2]))
            }
        }
        if try exists("schema_function") {
            for row in try rows("SELECT name, encode(checksum, 'hex') FROM postern.schema_function")
            where row.count == 2 {
                history.functions[row[0]] = row[1]
            }
        }
        history.hasRange = try exists("schema_range")
        if history.hasRange {
            for row in try rows("SELECT function_set, oldest_binary FROM postern.schema_range") where row.count == 2 {
                history.functionSet = Int32(row[0]) ?? 0
                history.oldestBinary = Int32(row[1])
            }
        }
        return history
    }

    func exists(_ table: String) throws(MigrationError) -> Bool {
        try rows(
            """
            SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = 'postern' AND c.relname = '\(table)' AND c.relkind = 'r'
            """) == [["1"]]
    }

    /// Runs SQL and returns the rows of its last statement as text, NULL as the empty string.
    func rows(_ sql: String, from file: SQLFile? = nil) throws(MigrationError) -> [[String]] {
        let result: ResultHandle
        do {
            result = try simpleQuery(sql, within: .seconds(24 * 60 * 60))
        } catch {
            disconnect()
            throw .interrupted
        }
        guard result.isSuccess else {
            guard !isTerminated else { throw .interrupted }
            let hint = result.hint.map { " (\($0))" } ?? ""
            throw .refused(
                file: file?.name ?? "schema",
                line: result.position.flatMap { position in file?.line(ofPosition: position) },
                sqlstate: result.sqlstate ?? "unknown", message: (result.message ?? "refused") + hint)
        }
        let pointer = result.pointer
        let columnCount = PQnfields(pointer)
        return (0..<result.rowCount).map { row in
            (0..<columnCount).map { column in PQgetvalue(pointer, row, column).map { String(cString: $0) } ?? "" }
        }
    }
}
