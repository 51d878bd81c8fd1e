/// What ``Migrator/migrate(progress:)`` would do to a database.
public struct MigrationPreview: Sendable, Equatable {
    /// For operators, a line each.
    public let lines: [String]
}

extension Connection {
    func preview(_ plan: MigrationPlan) throws(MigrationError) -> MigrationPreview {
        let history = try history()
        let standing = try plan.standing(history)
        var lines = [
            "database: migration \(history.migrations.map(\.version).max() ?? 0), function set \(history.functionSet)",
            "binary: migration \(plan.migrations.last?.version ?? 0), function set \(plan.range.functionSet)",
        ]
        if standing.isNewer {
            lines.append("The database is newer than this binary, whose servers work on it. There is nothing to do.")
            return MigrationPreview(lines: lines)
        }
        if history.hasRange, let oldest = history.oldestBinary, oldest < plan.range.oldestBinary {
            lines.append(
                "First: servers of binaries before function set \(plan.range.oldestBinary) are not ready any more")
        }
        let sizes = try tableSizes()
        for (_, file) in try plan.pendingMigrations(history) {
            lines.append(file.name)
            lines +=
                file == .schema
                ? ["  makes the tables: none is there before"]
                : plan.facts[file.name]?.lines(sizes) ?? ["  not measured: read the file"]
        }
        let functions = plan.pendingFunctions(history).map(\.name)
        if !functions.isEmpty {
            lines.append("functions, \(functions.count) files in one transaction: no table is locked")
            lines += functions.map { "  \($0)" }
        }
        if standing.pending.isEmpty { lines.append("The database is up to date.") }
        return MigrationPreview(lines: lines)
    }

    /// Rows and size of each table, as the statistics of the database estimate them.
    private func tableSizes() throws(MigrationError) -> [String: String] {
        let found = try rows(
            """
            SELECT c.relname,
                   CASE WHEN c.reltuples < 0 THEN 'unknown number of' ELSE 'about ' || c.reltuples::bigint END
                   || ' rows, ' || pg_size_pretty(pg_total_relation_size(c.oid))
              FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = 'postern' AND c.relkind IN ('r', 'p')
            """)
        return Dictionary(found.map { ($0[0], $0[1]) }) { first, _ in first }
    }
}

extension MigrationFacts {
    /// - Parameter sizes: of tables that exist; others are new with a migration before, and empty.
    fileprivate func lines(_ sizes: [String: String]) -> [String] {
        let used = uses.map { use in
            "  \(use.table) (\(sizes[use.table] ?? "new, few rows")): \(use.lock), \(use.waits)"
                + (use.work.isEmpty ? "" : "; " + use.work.joined(separator: "; "))
        }
        return used + expands.map { "  expands: \($0)" } + contracts.map { "  contracts: \($0)" }
            + (uses.isEmpty ? ["  locks no table that others use"] : [])
    }
}
