import Synchronization
import TestSupport
import Testing

@testable import Persistence

extension DatabaseTests {
    @Suite("Migrations")
    struct MigratorTests {
        private let first = SQLFile(
            name: "0001_first.sql", text: "CREATE TABLE a (n integer);\nINSERT INTO a VALUES (1);\n")
        private let second = SQLFile(name: "0002_second.sql", text: "ALTER TABLE a ADD m integer;")
        private let function = SQLFile(
            name: "01_f.sql", text: "CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1';")

        private func withEmptyDatabase(_ body: (String, (String) async throws -> [String]) async throws -> Void)
            async throws
        {
            let postgres = try await Shared.postgres.value
            let name = try await postgres.createDatabase()
            try await body(postgres.conninfo(database: name)) { try await postgres.psql($0, database: name) }
        }

        @Test func `an empty database gets everything once and is up to date then`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                let migrator = Migrator(conninfo: conninfo, migrations: [second, first], functions: [function])
                let pending = try await migrator.standing().pending
                #expect(pending == ["0001_first.sql", "0002_second.sql", "01_f.sql"])
                let told = Mutex<[String]>([])
                let applied = try await migrator.migrate { name in told.withLock { $0.append(name) } }
                #expect(applied == pending)
                #expect(told.withLock { $0 } == pending)
                let again = try await migrator.migrate()
                let left = try await migrator.standing().pending
                #expect(again.isEmpty && left.isEmpty)
                let rows = try await psql("SELECT version, name FROM postern.schema_migration ORDER BY version")
                #expect(rows == ["1|0001_first.sql", "2|0002_second.sql"])
            }
        }

        @Test func `the files embedded in this binary apply to an empty database, and then nothing is missing`()
            async throws
        {
            try await withEmptyDatabase { conninfo, _ in
                let applied = try await Migrator(conninfo: conninfo).migrate()
                let pending = try await Migrator(conninfo: conninfo).standing().pending
                #expect(applied == SQLFile.migrations.map(\.name) + SQLFile.functions.map(\.name))
                #expect(pending.isEmpty)
            }
        }

        @Test func `a role that may create roles but is no superuser can migrate and then check`() async throws {
            let postgres = try await Shared.postgres.value
            try await postgres.psql("CREATE ROLE migrator LOGIN CREATEROLE")
            try await postgres.psql("CREATE DATABASE by_migrator OWNER migrator")
            let migrator = Migrator(conninfo: postgres.conninfo(database: "by_migrator", user: "migrator"))
            try await migrator.migrate()
            let pending = try await migrator.standing().pending
            #expect(pending.isEmpty)
        }

        @Test func `checking changes nothing`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                _ = try await Migrator(conninfo: conninfo, migrations: [first], functions: [function]).standing()
                    .pending
                let schemas = try await psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'postern'")
                #expect(schemas == ["0"])
            }
        }

        @Test func `functions are applied again when their file changed, and only then`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                try await Migrator(conninfo: conninfo, migrations: [first], functions: [function]).migrate()
                let changed = SQLFile(name: function.name, text: function.text.replacing("SELECT 1", with: "SELECT 2"))
                let other = SQLFile(
                    name: "02_g.sql",
                    text: "CREATE OR REPLACE FUNCTION g() RETURNS integer LANGUAGE sql AS 'SELECT f()';")
                let applied = try await Migrator(conninfo: conninfo, migrations: [first], functions: [other, changed])
                    .migrate()
                #expect(applied == ["01_f.sql", "02_g.sql"])
                let value = try await psql("SELECT g()")
                #expect(value == ["2"])
            }
        }

        @Test func `functions are applied in the order of their paths, and the record lists the present files only`()
            async throws
        {
            try await withEmptyDatabase { conninfo, psql in
                let base = SQLFile(name: "0_base/z.sql", text: function.text)
                let user = SQLFile(
                    name: "a/g.sql",
                    text: "CREATE OR REPLACE FUNCTION g() RETURNS integer LANGUAGE sql AS 'SELECT f()';")
                let applied = try await Migrator(conninfo: conninfo, migrations: [first], functions: [user, base])
                    .migrate()
                #expect(applied == ["0001_first.sql", "0_base/z.sql", "a/g.sql"])
                let moved = SQLFile(name: "b/g.sql", text: user.text)
                let again = try await Migrator(conninfo: conninfo, migrations: [first], functions: [moved, base])
                    .migrate()
                #expect(again == ["b/g.sql"])
                let recorded = try await psql("SELECT name FROM postern.schema_function ORDER BY name")
                #expect(recorded == ["0_base/z.sql", "b/g.sql"])
            }
        }

        @Test(
            "paths that leave the folder or hold odd characters are refused",
            arguments: ["", "/f.sql", "a//f.sql", "../f.sql", "a/../f.sql", "a/.f.sql", "a/f'.sql", "a/"])
        func paths(_ path: String) {
            #expect(throws: MigrationError.unusableFile(path)) {
                try MigrationPlan(migrations: [], functions: [SQLFile(name: path, text: "")])
            }
        }

        @Test func `a migration edited after it was applied is refused`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                try await Migrator(conninfo: conninfo, migrations: [first], functions: []).migrate()
                let edited = SQLFile(name: first.name, text: first.text + " ")
                await #expect(throws: MigrationError.edited("0001_first.sql")) {
                    try await Migrator(conninfo: conninfo, migrations: [edited, second], functions: []).migrate()
                }
                await #expect(throws: MigrationError.edited("0001_first.sql")) {
                    try await Migrator(conninfo: conninfo, migrations: [edited], functions: []).standing().pending
                }
            }
        }

        @Test func `a database newer than the binary is refused`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                try await Migrator(conninfo: conninfo, migrations: [first, second], functions: []).migrate()
                await #expect(throws: MigrationError.databaseIsNewer("migration 2 (0002_second.sql)", isServed: false))
                {
                    try await Migrator(conninfo: conninfo, migrations: [first], functions: []).standing()
                }
            }
        }

        @Test func `a migration that comes too late for its number is refused`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                try await Migrator(conninfo: conninfo, migrations: [second], functions: []).migrateExpectingFailure()
                let third = SQLFile(name: "0003_third.sql", text: "SELECT 1")
                try await Migrator(conninfo: conninfo, migrations: [first, third], functions: []).migrate()
                await #expect(throws: MigrationError.outOfOrder("0002_second.sql")) {
                    try await Migrator(conninfo: conninfo, migrations: [first, second, third], functions: []).migrate()
                }
            }
        }

        @Test func `a database of before the first release is named as such, however new it is`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                let former = SQLFile(name: "0001_former.sql", text: "SELECT 1")
                let later = SQLFile(name: "0060_later.sql", text: "SELECT 1")
                try await Migrator(conninfo: conninfo, migrations: [former, later], functions: []).migrate()
                let release = Migrator(conninfo: conninfo, migrations: [first, second], functions: [function])
                await #expect(throws: MigrationError.beforeFirstRelease) { try await release.migrate() }
                await #expect(throws: MigrationError.beforeFirstRelease) { try await release.standing() }
                await #expect(throws: MigrationError.beforeFirstRelease) { try await release.preview() }
                #expect(try await psql("SELECT count(*) FROM postern.schema_migration") == ["2"])
            }
        }

        @Test func `a migration that fails leaves nothing behind and says where`() async throws {
            try await withEmptyDatabase { conninfo, psql in
                let broken = SQLFile(
                    name: "0002_broken.sql", text: "CREATE TABLE b (n integer);\n\nINSERT INTO nowhere VALUES (1);\n")
                await #expect(
                    throws: MigrationError.refused(
                        file: "0002_broken.sql", line: 3, sqlstate: "42P01",
                        message: "relation \"nowhere\" does not exist")
                ) {
                    try await Migrator(conninfo: conninfo, migrations: [first, broken], functions: []).migrate()
                }
                let tables = try await psql("SELECT count(*) FROM pg_class WHERE relname = 'b'")
                #expect(tables == ["0"])
                let pending = try await Migrator(conninfo: conninfo, migrations: [first, second], functions: [])
                    .standing().pending
                #expect(pending == ["0002_second.sql"])
            }
        }

        @Test func `a migration that ends the transaction itself is refused`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                let file = SQLFile(name: "0001_commits.sql", text: "COMMIT")
                await #expect(throws: MigrationError.self) {
                    try await Migrator(conninfo: conninfo, migrations: [file], functions: []).migrate()
                }
            }
        }

        @Test func `of ten runners at once one applies and nine find it done`() async throws {
            try await withEmptyDatabase { conninfo, _ in
                let slow = SQLFile(name: "0002_slow.sql", text: "ALTER TABLE a ADD m integer; SELECT pg_sleep(0.1)")
                let migrator = Migrator(conninfo: conninfo, migrations: [first, slow], functions: [function])
                let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                    for _ in 0..<10 { group.addTask { try await migrator.migrate() } }
                    return try await group.reduce(into: [[String]]()) { $0.append($1) }
                }
                #expect(applied.count { $0.isEmpty } == 9)
                #expect(applied.contains(["0001_first.sql", "0002_slow.sql", "01_f.sql"]))
            }
        }

        @Test(
            "names that are no migration are refused before anything is asked",
            arguments: [
                "first.sql", "_first.sql", "0000_zero.sql", "-1_minus.sql", "0001_it's.sql", "99999999999_big.sql", "",
            ])
        func names(_ name: String) {
            #expect(throws: MigrationError.unusableFile(name)) {
                try MigrationPlan(migrations: [SQLFile(name: name, text: "")], functions: [])
            }
        }

        @Test func `one number cannot stand for two migrations`() {
            #expect(throws: MigrationError.unusableFile("0001_other.sql")) {
                try MigrationPlan(migrations: [first, SQLFile(name: "0001_other.sql", text: "")], functions: [])
            }
        }

        @Test func `no server is named as such`() async {
            await #expect(throws: MigrationError.self) {
                try await Migrator(conninfo: "host=/nowhere").standing().pending
            }
        }
    }
}

extension Migrator {
    /// For histories that cannot begin the usual way.
    fileprivate func migrateExpectingFailure() async throws {
        await #expect(throws: MigrationError.self) { try await migrate() }
    }
}
