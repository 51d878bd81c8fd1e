import CLibPQ

/// The runner's side of a connection. Everything here blocks the connection's own thread for as long as it takes.
extension Connection {
    /// `postern` in ASCII: the advisory lock that runners of this and every other version share.
    private static var lockKey: String { "x'706f737465726e'::bigint" }

    func pending(_ plan: MigrationPlan) throws(MigrationError) -> [SQLFile] {
        let history = try history()
        return try plan.pendingMigrations(history).map(\.file) + plan.pendingFunctions(history)
    }

    func migrate(_ plan: MigrationPlan, progress: (String) -> Void) throws(MigrationError) -> [String] {
        if try rows("SELECT pg_try_advisory_lock(\(Self.lockKey))") != [["t"]] {
            progress("waiting for another migration to end")
            _ = try rows("SELECT pg_advisory_lock(\(Self.lockKey))")
        }
        defer { _ = try? rows("SELECT pg_advisory_unlock(\(Self.lockKey))") }

        let history = try history()
        let migrations = try plan.pendingMigrations(history)
        for (version, file) in migrations {
            progress(file.name)
            try inTransaction { () throws(MigrationError) in
                _ = try rows(Self.createMigrationTable)
                try apply(file)
                _ = try rows(
                    """
                    INSERT INTO postern.schema_migration (version, name, checksum)
                    VALUES (\(version), '\(file.name)', decode('\(file.checksum)', 'hex'))
                    """)
            }
        }
        let functions = plan.pendingFunctions(history)
        guard !functions.isEmpty else { return migrations.map(\.file.name) }
        try inTransaction { () throws(MigrationError) in
            _ = try rows(Self.createMigrationTable + Self.createFunctionTable)
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
            // Files that were renamed or are gone: the table lists what is in force.
            let names = plan.functions.map { "'\($0.name)'" }.joined(separator: ", ")
            _ = try rows("DELETE FROM postern.schema_function WHERE name NOT IN (\(names))")
        }
        return migrations.map(\.file.name) + functions.map(\.name)
    }

    private func history() throws(MigrationError) -> MigrationPlan.History {
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
        return history
    }

    private func exists(_ table: String) throws(MigrationError) -> Bool {
        try rows(
            """
            SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             WHERE n.nspname = 'postern' AND c.relname = '\(table)' AND c.relkind = 'r'
            """) == [["1"]]
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

    private func inTransaction(_ body: () throws(MigrationError) -> Void) throws(MigrationError) {
        _ = try rows("BEGIN")
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

    private func apply(_ file: SQLFile) throws(MigrationError) {
        _ = try rows(file.text, from: file)
    }

    /// Runs SQL and returns the rows of its last statement as text, NULL as the empty string.
    private func rows(_ sql: String, from file: SQLFile? = nil) throws(MigrationError) -> [[String]] {
        let failure: StatementFailure
        do {
            return try textRows(sql)
        } catch {
            failure = error
        }
        guard let sqlstate = failure.sqlstate else { throw .interrupted }
        throw .refused(
            file: file?.name ?? "schema",
            line: failure.position.flatMap { position in file?.line(ofPosition: position) }, sqlstate: sqlstate,
            message: failure.description)
    }
}
