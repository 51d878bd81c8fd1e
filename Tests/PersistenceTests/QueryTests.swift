import Persistence
import TestSupport
import Testing

extension DatabaseTests {
    @Suite("Statements against a real server")
    struct QueryTests {
        @Test func `every kind of value survives the way there and back`() async throws {
            try await withDatabase { database, _ in
                let uuid = UUIDValue.random()
                let echo = sql(
                    """
                    SELECT $1::uuid, $2::bytea, $3::text, $4::integer, $5::bigint, $6::double precision, $7::boolean, $8::text[],
                           $9::integer[], $10::double precision[], $11::bytea[], $12::uuid[], $13::jsonb, $14::text
                    """)
                let parameters: [Parameter] = [
                    .uuid(uuid), .bytes([0, 255, 7]), .text("Grüße 🗝"), .int(.min), .bigint(.max), .double(-0.1),
                    .bool(true),
                    .texts(["a", "", "ü,\"{}"]), .ints([1, -1]), .doubles([1.5]), .byteArrays([[], [0]]),
                    .uuids([uuid]),
                    .json("{\"a\": [1]}"), .null,
                ]
                let rows = try await database.query(echo, parameters) { (row) throws(StoreError) in
                    #expect(try row.uuid(0) == uuid)
                    #expect(try row.bytes(1) == [0, 255, 7])
                    #expect(try row.text(2) == "Grüße 🗝")
                    #expect(try row.int(3) == .min)
                    #expect(try row.bigint(4) == .max)
                    #expect(try row.double(5) == -0.1)
                    #expect(try row.bool(6))
                    #expect(try row.texts(7) == ["a", "", "ü,\"{}"])
                    #expect(try row.ints(8) == [1, -1])
                    #expect(try row.doubles(9) == [1.5])
                    #expect(try row.byteArrays(10) == [[], [0]])
                    #expect(try row.uuids(11) == [uuid])
                    #expect(try row.text(12) == "{\"a\": [1]}")
                    #expect(try row.textOrNil(13) == nil)
                    #expect(try row.isNull(13))
                    return row.columnCount
                }
                #expect(rows == [14])
            }
        }

        @Test func `empty values and empty arrays are not NULL`() async throws {
            try await withDatabase { database, _ in
                let rows = try await database.query(
                    sql("SELECT $1::text, $2::bytea, $3::text[], $4::integer[]"),
                    [.text(""), .bytes([]), .texts([]), .ints([])]
                ) { (row) throws(StoreError) in
                    (try row.text(0), try row.bytes(1), try row.texts(2), try row.ints(3))
                }
                let only = try #require(rows.first)
                #expect(only.0 == "" && only.1 == [] && only.2 == [] && only.3 == [])
            }
        }

        @Test func `a statement first sent with NULL takes a value later`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                let echo = sql("SELECT $1::uuid")
                let uuid = UUIDValue.random()
                for parameter in [Parameter.null, .uuid(uuid), .null] {
                    let rows = try await database.query(echo, [parameter]) { (row) throws(StoreError) in
                        try row.uuidOrNil(0)
                    }
                    #expect(rows == [parameter == .null ? nil : uuid])
                }
            }
        }

        @Test func `no value is ever read as another type, and a column that is not there traps nothing`() async throws
        {
            try await withDatabase { database, _ in
                let row = sql(
                    """
                    SELECT NULL::uuid, 'text'::text, 1::integer, 1::numeric, now(), '\\x00'::bytea, ARRAY[NULL]::text[],
                           ARRAY[[1, 2], [3, 4]], 3000000000::bigint, ARRAY['a']::name[], '(1,2)'::point
                    """)
                func refused<R: Sendable>(_ decode: @escaping @Sendable (borrowing Row) throws(StoreError) -> R) async {
                    await #expect(throws: StoreError.malformedResult) { try await database.query(row, [], decode) }
                }
                await refused { (row) throws(StoreError) in try row.uuid(0) }
                await refused { (row) throws(StoreError) in try row.uuid(1) }
                await refused { (row) throws(StoreError) in try row.bytes(1) }
                await refused { (row) throws(StoreError) in try row.int(1) }
                await refused { (row) throws(StoreError) in try row.text(2) }
                await refused { (row) throws(StoreError) in try row.bool(2) }
                await refused { (row) throws(StoreError) in try row.double(2) }
                await refused { (row) throws(StoreError) in try row.double(3) }
                await refused { (row) throws(StoreError) in try row.text(4) }
                await refused { (row) throws(StoreError) in try row.text(5) }
                await refused { (row) throws(StoreError) in try row.texts(6) }
                await refused { (row) throws(StoreError) in try row.ints(7) }
                await refused { (row) throws(StoreError) in try row.int(8) }
                await refused { (row) throws(StoreError) in try row.uuids(9) }
                await refused { (row) throws(StoreError) in try row.text(10) }
                for column in [11, -1, .max, .min] {
                    await refused { (row) throws(StoreError) in try row.text(column) }
                    await refused { (row) throws(StoreError) in try row.isNull(column) }
                }
                let names = try await database.query(row, []) { (row) throws(StoreError) in try row.texts(9) }
                #expect(names == [["a"]])
            }
        }

        @Test func `NUL in text is refused before anything is sent`() async throws {
            try await withDatabase { database, _ in
                let echo = sql("SELECT $1::text")
                for parameter in [Parameter.text("a\u{0}b"), .json("\"\u{0}\""), .texts(["ok", "\u{0}"])] {
                    await #expect(throws: StoreError.rejected(sqlstate: "22021")) {
                        try await database.query(echo, [parameter]) { (row) throws(StoreError) in try row.text(0) }
                    }
                }
                try await #expect(database.text("SELECT 'still here'") == "still here")
            }
        }

        @Test func `refusals are told apart by SQLSTATE, and the connection serves on`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                try await database.run(
                    "CREATE TABLE t (id integer CONSTRAINT t_id PRIMARY KEY, n integer CONSTRAINT t_n CHECK (n > 0))")
                try await database.run("INSERT INTO t VALUES (1, 1)")
                let backend = try await database.number("SELECT pg_backend_pid()::bigint")
                await #expect(throws: StoreError.violation(sqlstate: "23505", constraint: "t_id")) {
                    try await database.run("INSERT INTO t VALUES (1, 2)")
                }
                await #expect(throws: StoreError.violation(sqlstate: "23514", constraint: "t_n")) {
                    try await database.run("INSERT INTO t VALUES (2, 0)")
                }
                await #expect(throws: StoreError.violation(sqlstate: "23502", constraint: nil)) {
                    try await database.run("INSERT INTO t VALUES (NULL, 1)")
                }
                await #expect(throws: StoreError.rejected(sqlstate: "42P01")) {
                    try await database.run("SELECT FROM nowhere")
                }
                await #expect(throws: StoreError.rejected(sqlstate: "42601")) { try await database.run("SELEKT") }
                await #expect(throws: StoreError.rejected(sqlstate: "22P02")) {
                    try await database.run("SELECT ''::uuid")
                }
                await #expect(throws: StoreError.rejected(sqlstate: "22012")) { try await database.run("SELECT 1/0") }
                try await #expect(database.number("SELECT pg_backend_pid()::bigint") == backend)
            }
        }

        @Test func `disk full and out of memory are the server's trouble, not a defect of the statement`() async throws
        {
            try await withDatabase { database, _ in
                for sqlstate in ["53100", "53200", "58030"] {
                    await #expect(throws: StoreError.unavailable(.serverResources)) {
                        try await database.run("DO $$ BEGIN RAISE SQLSTATE '\(sqlstate)'; END $$")
                    }
                }
            }
        }

        @Test func `a statement that takes too long is ended by the server`() async throws {
            try await withDatabase(connections: 1, configure: { $0.statementTimeout = .milliseconds(300) }) {
                database, _ in
                let backend = try await database.number("SELECT pg_backend_pid()::bigint")
                await #expect(throws: StoreError.timedOut) { try await database.run("SELECT pg_sleep(30)") }
                try await #expect(database.number("SELECT pg_backend_pid()::bigint") == backend)
            }
        }

        @Test func `a statement that waits too long for a lock is ended by the server`() async throws {
            try await withDatabase(connections: 2, configure: { $0.lockTimeout = .milliseconds(100) }) {
                database, configuration in
                try await database.run("CREATE TABLE t (n integer)")
                let postgres = try await Shared.postgres.value
                let name = try await database.text("SELECT current_database()::text") ?? ""
                let holder = Task.detached {
                    try await postgres.psql("BEGIN; LOCK TABLE t; SELECT pg_sleep(1); COMMIT", database: name)
                }
                _ = await time {
                    (try? await database.number("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass")) == 1
                }
                await #expect(throws: StoreError.timedOut) { try await database.run("INSERT INTO t VALUES (1)") }
                _ = try await holder.value
            }
        }

        @Test func `prepared statements that the session lost are prepared again`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                let backend = try await database.number("SELECT pg_backend_pid()::bigint")
                for command in ["DISCARD ALL", "DEALLOCATE ALL"] {
                    try await database.run(command)
                    try await #expect(database.number("SELECT pg_backend_pid()::bigint") == backend)
                }
            }
        }

        @Test func `two statements under one name are not confused`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                for number in [1, 2, 1] {
                    let statement = Statement(name: "same", sql: "SELECT \(number)::bigint", effect: .readOnly)
                    let rows = try await database.query(statement, []) { (row) throws(StoreError) in try row.bigint(0) }
                    #expect(rows == [Int64(number)])
                }
            }
        }

        @Test func `settings survive DISCARD ALL`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                try await database.run("DISCARD ALL")
                try await #expect(database.text("SHOW synchronous_commit") == "on")
                try await #expect(database.text("SHOW jit") == "off")
                try await #expect(database.text("SHOW statement_timeout") == "4750ms")
                try await #expect(database.text("SHOW lock_timeout") == "500ms")
                try await #expect(database.text("SHOW timezone") == "UTC")
                try await #expect(database.text("SHOW client_encoding") == "UTF8")
            }
        }

        @Test func `a plan that the schema outgrew is prepared again, inside a transaction too`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                let read = sql("SELECT * FROM t")
                try await database.run("CREATE TABLE t (a integer)")
                try await database.run("INSERT INTO t VALUES (1)")
                try await #expect(database.query(read, []) { $0.columnCount } == [1])
                try await database.run("ALTER TABLE t ADD b integer")
                try await #expect(database.query(read, []) { $0.columnCount } == [2])
                try await database.run("ALTER TABLE t ADD c integer")
                let counts = try await database.transaction("test") { (transaction) throws(StoreError) in
                    try transaction.query(read, []) { $0.columnCount }
                }
                #expect(counts == [3])
            }
        }

        @Test func `a role that lowers synchronous_commit does not get its way`() async throws {
            let postgres = try await Shared.postgres.value
            try await postgres.psql("CREATE ROLE careless LOGIN; ALTER ROLE careless SET synchronous_commit = off")
            let configuration = DatabaseConfiguration(conninfo: postgres.conninfo(user: "careless"), connections: 1)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                try await #expect(database.text("SHOW synchronous_commit") == "on")
            }
        }

        @Test func `options of the connection string are kept, but cannot lower durability`() async throws {
            let postgres = try await Shared.postgres.value
            let configuration = DatabaseConfiguration(
                conninfo: postgres.conninfo(
                    extra: "options='-c synchronous_commit=off -c work_mem=1234kB' application_name=mine"),
                connections: 1)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                try await #expect(database.text("SHOW synchronous_commit") == "on")
                try await #expect(database.text("SHOW work_mem") == "1234kB")
                try await #expect(database.text("SHOW application_name") == "mine")
            }
        }

        @Test func `a flood of notices is swallowed`() async throws {
            try await withDatabase { database, _ in
                try await database.run("SET client_min_messages = debug5")
                try await database.run(
                    "DO $$ BEGIN FOR i IN 1..20000 LOOP RAISE NOTICE 'secret %', i; END LOOP; END $$")
                try await #expect(database.number("SELECT 1::bigint") == 1)
            }
        }

        @Test func `values of many megabytes pass`() async throws {
            try await withDatabase { database, _ in
                let bytes = Array(repeating: UInt8(7), count: 24 << 20)
                let rows = try await database.query(sql("SELECT $1::bytea"), [.bytes(bytes)]) {
                    (row) throws(StoreError) in
                    try row.bytes(0)
                }
                #expect(rows == [bytes])
            }
        }

        @Test func `a message of the database names nothing in the error`() async throws {
            try await withDatabase { database, _ in
                do {
                    try await database.run("DO $$ BEGIN RAISE EXCEPTION 'code 123456'; END $$")
                    Issue.record("nothing was thrown")
                } catch {
                    #expect(!"\(error) \(String(reflecting: error))".contains("123456"))
                }
            }
        }
    }
}
