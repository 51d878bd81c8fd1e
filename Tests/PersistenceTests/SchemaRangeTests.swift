import Synchronization
import TestSupport
import Testing

@testable import Persistence

extension DatabaseTests {
    /// Binaries N and N + 1 beside each other: which of them may migrate, start and serve on what the other left.
    @Suite("Range of schemas")
    struct SchemaRangeTests {
        private let table = SQLFile(name: "0001_table.sql", text: "CREATE TABLE a (n integer)")
        private let ranges = SQLFile(
            name: "0002_ranges.sql",
            text: """
                CREATE TABLE postern.schema_range (
                    is_present boolean PRIMARY KEY DEFAULT true, function_set integer, oldest_binary integer,
                    changed_at timestamptz DEFAULT now())
                """)
        private let third = SQLFile(name: "0003_third.sql", text: "ALTER TABLE a ADD m integer")

        private func function(_ value: Int) -> SQLFile {
            SQLFile(
                name: "f.sql",
                text: "CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT \(value)'")
        }

        /// The binary with a number: it has the third migration from number 2 on, and a function that returns the number.
        private func binary(
            _ number: Int32, oldestSet: Int32 = 1, oldestBinary: Int32 = 1, _ conninfo: String,
            lockWait: LockWait = LockWait()
        ) -> Migrator {
            Migrator(
                conninfo: conninfo, migrations: number == 1 ? [table, ranges] : [table, ranges, third],
                functions: [function(Int(number))],
                range: SchemaRange(functionSet: number, oldestFunctionSet: oldestSet, oldestBinary: oldestBinary),
                lockWait: lockWait)
        }

        private func withEmptyDatabase(
            _ body: (String, @escaping @Sendable (String) async throws -> [String]) async throws -> Void
        ) async throws {
            let postgres = try await Shared.postgres.value
            let name = try await postgres.createDatabase()
            try await body(postgres.conninfo(database: name)) { try await postgres.psql($0, database: name) }
        }

        @Test func `an older binary serves on the schema of a newer one, and its migrate changes nothing`() async throws
        {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(1, conninfo).migrate()
                #expect(try await psql("SELECT function_set, oldest_binary FROM postern.schema_range") == ["1|1"])
                try await binary(2, conninfo).migrate()
                let older = try await binary(1, conninfo).standing()
                #expect(older == SchemaStanding(pending: [], isNewer: true, isServed: true))
                await #expect(
                    throws: MigrationError.databaseIsNewer("migration 3 (0003_third.sql)", isServed: true)
                ) { try await binary(1, conninfo).migrate() }
                #expect(try await psql("SELECT f() || ' ' || function_set FROM postern.schema_range") == ["2 2"])
            }
        }

        @Test func `functions alone have an order too`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(3, conninfo).migrate()
                let older = try await binary(2, conninfo).standing()
                #expect(older == SchemaStanding(pending: [], isNewer: true, isServed: true))
                let refusal = MigrationError.databaseIsNewer("function set 3, this binary has 2", isServed: true)
                await #expect(throws: refusal) { try await binary(2, conninfo).migrate() }
                #expect("\(refusal)".contains("only a newer binary may migrate"))
                #expect(try await psql("SELECT f()") == ["3"])
            }
        }

        @Test func `a schema that is too new for a binary says so`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(1, conninfo).migrate()
                try await binary(3, oldestBinary: 2, conninfo).migrate()
                await #expect(
                    throws: MigrationError.databaseIsNewer("migration 3 (0003_third.sql)", isServed: false)
                ) { try await binary(1, conninfo).standing() }
                #expect(try await binary(2, conninfo).standing().isServed)
                // A later release that states less takes nothing back.
                try await binary(4, oldestBinary: 1, conninfo).migrate()
                #expect(try await psql("SELECT function_set, oldest_binary FROM postern.schema_range") == ["4|2"])
            }
        }

        @Test func `a newer binary serves on an older schema within its range only`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                try await binary(1, conninfo).migrate()
                let within = try await binary(2, oldestSet: 1, conninfo).standing()
                let pending = ["0003_third.sql", "f.sql"]
                #expect(within == SchemaStanding(pending: pending, isNewer: false, isServed: true))
                let beyond = try await binary(2, oldestSet: 2, conninfo).standing()
                #expect(beyond == SchemaStanding(pending: pending, isNewer: false, isServed: false))
            }
        }

        @Test func `functions that differ within one set are of an unknown build`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(2, conninfo).migrate()
                _ = try await psql("UPDATE postern.schema_function SET checksum = '\\x00'")
                let standing = try await binary(2, conninfo).standing()
                #expect(standing == SchemaStanding(pending: ["f.sql"], isNewer: false, isServed: false))
            }
        }

        @Test func `a set that differs in nothing but its number is noted`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                let range = SchemaRange(functionSet: 5, oldestFunctionSet: 1, oldestBinary: 1)
                let later = Migrator(
                    conninfo: conninfo, migrations: [table, ranges], functions: [function(1)], range: range)
                try await binary(1, conninfo).migrate()
                #expect(try await later.migrate() == [])
                #expect(try await psql("SELECT function_set FROM postern.schema_range") == ["5"])
            }
        }

        @Test func `the range closes before the first migration, also when that fails`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(1, conninfo).migrate()
                let range = SchemaRange(functionSet: 2, oldestFunctionSet: 1, oldestBinary: 2)
                let broken = SQLFile(name: "0003_broken.sql", text: "SELECT 1/0")
                let later = Migrator(
                    conninfo: conninfo, migrations: [table, ranges, broken], functions: [], range: range)
                await #expect(throws: MigrationError.self) { try await later.migrate() }
                #expect(try await psql("SELECT function_set, oldest_binary FROM postern.schema_range") == ["1|2"])
            }
        }

        @Test func `a migration gives way to those who hold a lock, and comes again`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(1, conninfo).migrate()
                let holder = Task { try await psql("BEGIN; LOCK TABLE a; SELECT pg_sleep(1); COMMIT") }
                while try await psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted")
                    == ["0"]
                {}
                let told = Mutex<[String]>([])
                let lockWait = LockWait(once: .milliseconds(20), firstPause: .milliseconds(50))
                let applied = try await binary(2, conninfo, lockWait: lockWait).migrate { line in
                    told.withLock { $0.append(line) }
                }
                _ = try await holder.value
                #expect(applied == ["0003_third.sql", "f.sql"])
                let waits = told.withLock {
                    $0.filter { $0.contains("a lock is held by others, open transactions: pid") }
                }
                #expect(!waits.isEmpty && waits.allSatisfy { $0.hasPrefix("0003_third.sql: ") })
            }
        }

        @Test func `a migration that waits for one table keeps no request waiting for long for another`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                // As the binary's own migrations: the tables are the owner's.
                _ = try await psql(
                    """
                    DO $$ BEGIN CREATE ROLE postern_owner; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
                    CREATE SCHEMA postern AUTHORIZATION postern_owner
                    """)
                let tables = SQLFile(
                    name: "0001_tables.sql",
                    text:
                        "SET LOCAL ROLE postern_owner; CREATE TABLE postern.a (); CREATE TABLE postern.b (); RESET ROLE"
                )
                let both = SQLFile(
                    name: "0002_both.sql",
                    text: "ALTER TABLE postern.a ADD n integer; SELECT pg_sleep(0); ALTER TABLE postern.b ADD n integer"
                )
                let facts = MigrationFacts.parse(
                    "0002_both.sql\tuses\ta\tACCESS EXCLUSIVE\t\n0002_both.sql\tuses\tb\tACCESS EXCLUSIVE\t")
                // Each of the two tables is waited for during half of it.
                let lockWait = LockWait(once: .seconds(1), firstPause: .milliseconds(50))
                func migrator(_ migrations: [SQLFile]) -> Migrator {
                    Migrator(
                        conninfo: conninfo, migrations: migrations, functions: [], range: .own, lockWait: lockWait,
                        facts: facts)
                }
                try await migrator([tables]).migrate()
                let holder = Task { try await psql("BEGIN; LOCK TABLE postern.b; SELECT pg_sleep(3); COMMIT") }
                while try await psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted")
                    == ["0"]
                {}
                _ = try await psql("CREATE TABLE longest (ms double precision)")
                // Alone in its call: it commits on its way.
                let reader = Task { try await psql(Self.longestWait) }
                try await migrator([tables, both]).migrate()
                _ = try await (holder.value, reader.value)
                let longest = Double(try await psql("SELECT ms FROM longest")[0]) ?? .infinity
                #expect(longest < 900, "one table was waited for for \(longest) ms")
            }
        }

        /// Reads a table again and again for two seconds and notes how long the longest read took.
        private static let longestWait = """
            DO $$
            DECLARE
                v_begin timestamptz; v_longest interval := '0'; v_end timestamptz := clock_timestamp() + '2 seconds';
            BEGIN
                WHILE clock_timestamp() < v_end LOOP
                    v_begin := clock_timestamp();
                    PERFORM FROM postern.a;
                    v_longest := greatest(v_longest, clock_timestamp() - v_begin);
                    COMMIT;
                    PERFORM pg_sleep(0.001);
                END LOOP;
                INSERT INTO longest VALUES (extract(epoch FROM v_longest) * 1000);
            END $$
            """

        @Test func `a lock that is never given up ends the try with the holders' names`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await binary(1, conninfo).migrate()
                let holder = Task {
                    try await psql("SET application_name = 'report'; BEGIN; LOCK TABLE a; SELECT pg_sleep(20)")
                }
                while try await psql("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted")
                    == ["0"]
                {}
                let lockWait = LockWait(
                    once: .milliseconds(20), inAll: .milliseconds(200), firstPause: .milliseconds(50))
                let refusal = await #expect(throws: MigrationError.self) {
                    try await binary(2, conninfo, lockWait: lockWait).migrate()
                }
                _ = try await psql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'report'")
                _ = try? await holder.value
                guard case .locked(file: "0003_third.sql", let holders) = refusal else {
                    Issue.record("\(String(describing: refusal))")
                    return
                }
                #expect(holders.contains("(report, open for "))
                #expect(try await binary(1, conninfo).standing().pending == [])
            }
        }

        @Test func `this binary's own numbers are in order`() {
            let own = SchemaRange.own
            #expect(own.oldestFunctionSet <= own.functionSet && own.oldestBinary <= own.functionSet)
            #expect(own.obstacle(functionSet: own.functionSet, oldestBinary: own.oldestBinary) == nil)
            #expect(own.obstacle(functionSet: own.functionSet + 1, oldestBinary: own.functionSet) == nil)
            #expect(own.obstacle(functionSet: own.functionSet + 1, oldestBinary: own.functionSet + 1) != nil)
            #expect(own.obstacle(functionSet: own.oldestFunctionSet - 1, oldestBinary: 0) != nil)
        }

        @Test func `servers of this binary start on no set that lacks a function they call`() {
            // Lower the oldest set only together with a test that runs servers on it.
            #expect(SchemaRange.own.oldestFunctionSet == SchemaRange.own.functionSet)
        }
    }
}
