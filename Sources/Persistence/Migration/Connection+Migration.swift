import CLibPQ

/// The runner's side of a connection. Everything here blocks the connection's own thread for as long as it takes.
extension Connection {
    /// `postern` in ASCII: the advisory lock that runners of this and every other version share.
    private static var lockKey: String { "x'706f737465726e'::bigint" }

    func standing(_ plan: MigrationPlan) throws(MigrationError) -> SchemaStanding {
        try plan.standing(try history())
    }

    func migrate(
        _ plan: MigrationPlan, lockWait: LockWait, progress: (String) -> Void
    ) throws(MigrationError) -> [String] {
        if try rows("SELECT pg_try_advisory_lock(\(Self.lockKey))") != [["t"]] {
            progress("waiting for another migration to end")
            _ = try rows("SELECT pg_advisory_lock(\(Self.lockKey))")
        }
        defer { _ = try? rows("SELECT pg_advisory_unlock(\(Self.lockKey))") }

        let history = try history()
        let standing = try plan.standing(history)
        if standing.isNewer, let newer = plan.newerPart(of: history) {
            throw .databaseIsNewer(newer, isServed: standing.isServed)
        }
        let migrations = try plan.pendingMigrations(history)
        let functions = plan.pendingFunctions(history)
        guard !migrations.isEmpty || !functions.isEmpty || history.functionSet != plan.range.functionSet else {
            return []
        }
        if history.hasRange {
            // First of all, so that binaries for which the new schema is too new leave before it comes.
            _ = try rows(
                """
                UPDATE postern.schema_range SET oldest_binary = \(plan.range.oldestBinary), changed_at = now()
                 WHERE oldest_binary < \(plan.range.oldestBinary)
                """)
        }
        for (version, file) in migrations {
            progress(file.name)
            try inTransaction(file.name, lockWait, progress) { () throws(MigrationError) in
                try takeLocks(of: plan.facts[file.name], lockWait)
                _ = try rows(Self.createMigrationTable)
                try apply(file)
                _ = try rows(
                    """
                    INSERT INTO postern.schema_migration (version, name, checksum)
                    VALUES (\(version), '\(file.name)', decode('\(file.checksum)', 'hex'))
                    """)
            }
        }
        try inTransaction("functions", lockWait, progress) { () throws(MigrationError) in
            try apply(functions, of: plan, progress)
        }
        return migrations.map(\.file.name) + functions.map(\.name)
    }

    private func apply(
        _ functions: [SQLFile], of plan: MigrationPlan, _ progress: (String) -> Void
    ) throws(MigrationError) {
        if !functions.isEmpty { _ = try rows(Self.createMigrationTable + Self.createFunctionTable) }
        for file in functions {
            progress(file.name)
            try apply(file)
            _ = try rows(
                """
                RESET ROLE;
                INSERT INTO postern.schema_function (name, checksum)
                VALUES ('\(file.name)', decode('\(file.checksum)', 'hex'))
                ON CONFLICT (name) DO UPDATE SET checksum = EXCLUDED.checksum, applied_at = now()
                """)
        }
        if !functions.isEmpty {
            // Files that were renamed or are gone: the table lists what is in force.
            let names = plan.functions.map { "'\($0.name)'" }.joined(separator: ", ")
            _ = try rows("DELETE FROM postern.schema_function WHERE name NOT IN (\(names))")
        }
        guard try exists("schema_range") else { return }
        _ = try rows(
            """
            INSERT INTO postern.schema_range AS r (function_set, oldest_binary)
            VALUES (\(plan.range.functionSet), \(plan.range.oldestBinary))
            ON CONFLICT (is_present) DO UPDATE
                SET function_set = EXCLUDED.function_set,
                    oldest_binary = greatest(r.oldest_binary, EXCLUDED.oldest_binary), changed_at = now()
            """)
    }

    private static var createMigrationTable: String {
        """
        CREATE SCHEMA IF NOT EXISTS postern;
        CREATE TABLE IF NOT EXISTS postern.schema_migration (
            version integer PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now());

        """
    }

    /// Has the owner and the rights of the table of migrations, independent of the role that runs this.
    private static var createFunctionTable: String {
        """
        CREATE TABLE IF NOT EXISTS postern.schema_function (
            name text PRIMARY KEY, checksum bytea NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
        COMMENT ON TABLE postern.schema_function IS
            'Files of functions applied to this database, with the checksum of each; no tenant data';
        DO $$
        DECLARE
            keeper text := (SELECT tableowner FROM pg_tables
                             WHERE schemaname = 'postern' AND tablename = 'schema_migration');
        BEGIN
            IF keeper IS DISTINCT FROM (SELECT tableowner FROM pg_tables
                                         WHERE schemaname = 'postern' AND tablename = 'schema_function') THEN
                EXECUTE format('ALTER TABLE postern.schema_function OWNER TO %I', keeper);
            END IF;
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'postern_app') THEN
                GRANT SELECT ON postern.schema_function TO postern_app;
            END IF;
        END
        $$;

        """
    }

    /// Runs a transaction. It runs again while it meets a lock that is held for longer than ``LockWait/once``.
    private func inTransaction(
        _ name: String, _ lockWait: LockWait, _ progress: (String) -> Void,
        _ body: () throws(MigrationError) -> Void
    ) throws(MigrationError) {
        let end = ContinuousClock.now + lockWait.inAll
        var pause = lockWait.firstPause
        while true {
            do throws(MigrationError) {
                return try inTransaction(lockTimeout: lockWait.once, body)
            } catch {
                // lock_not_available, deadlock_detected
                guard case .refused(_, _, let sqlstate, _) = error, ["55P03", "40P01"].contains(sqlstate) else {
                    throw error
                }
                let holders = try openTransactions()
                guard ContinuousClock.now + pause < end else { throw .locked(file: name, holders: holders) }
                progress("\(name): a lock is held by others, \(holders); trying again in \(pause)")
                _ = try rows("SELECT pg_sleep(\(pause / .seconds(1)))")
                pause = min(pause * 2, lockWait.longestPause)
            }
        }
    }

    private func inTransaction(
        lockTimeout: Duration, _ body: () throws(MigrationError) -> Void
    ) throws(MigrationError) {
        _ = try rows("BEGIN; SET LOCAL lock_timeout = \(Int(lockTimeout / .milliseconds(1)))")
        do throws(MigrationError) {
            try body()
            // A file that ends the transaction itself would be recorded without being undoable.
            guard let session, PQtransactionStatus(session) == PQTRANS_INTRANS else {
                throw MigrationError.refused(
                    file: "migration", line: nil, sqlstate: "25P01", message: "a file ended the transaction")
            }
        } catch {
            _ = try? rows("ROLLBACK")
            throw error
        }
        _ = try rows("COMMIT")
    }

    /// Takes the locks of a file before its first statement.
    ///
    /// A request that needs a table which is locked already waits for all the others, too. One after the other and with
    /// the whole time for each, a file that changes six tables kept requests waiting for longer than they do.
    private func takeLocks(of facts: MigrationFacts?, _ lockWait: LockWait) throws(MigrationError) {
        let wanted = facts?.uses.filter(\.isWaitedFor) ?? []
        let found = try rows(
            """
            SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = 'postern' AND c.relkind IN ('r', 'p')
            """)
        let present = Set(found.map { $0[0] })
        let uses = wanted.filter { present.contains($0.table) }
        guard uses.count > 1 else { return }
        let share = max(Int(lockWait.once / .milliseconds(1)) / uses.count, 1)
        let locks = uses.map { "LOCK TABLE postern.\($0.table) IN \($0.lock) MODE;" }.joined(separator: "\n")
        _ = try rows(
            """
            SET LOCAL lock_timeout = \(share);
            SET LOCAL ROLE postern_owner;
            \(locks)
            RESET ROLE;
            SET LOCAL lock_timeout = \(Int(lockWait.once / .milliseconds(1)))
            """)
    }

    /// The three longest transactions of other sessions, in words.
    private func openTransactions() throws(MigrationError) -> String {
        let open = try rows(
            """
            SELECT format('pid %s (%s, open for %s s)', a.pid, coalesce(nullif(a.application_name, ''), 'no name'),
                          round(extract(epoch FROM clock_timestamp() - a.xact_start)))
              FROM pg_stat_activity AS a
             WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
             ORDER BY a.xact_start LIMIT 3
            """)
        return "open transactions: " + (open.isEmpty ? "none now" : open.map { $0[0] }.joined(separator: ", "))
    }

    private func apply(_ file: SQLFile) throws(MigrationError) {
        _ = try rows(file.text, from: file)
    }
}
