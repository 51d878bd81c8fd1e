import Persistence
import Synchronization
import TestSupport
import Testing

extension DatabaseTests {
    @Suite("Transactions")
    struct TransactionTests {
        static let insert = sql("INSERT INTO t VALUES ($1)", .once)

        private func withTable(
            connections: Int = 4, _ body: (Database) async throws -> Void
        ) async throws {
            try await withDatabase(connections: connections) { database, _ in
                try await database.run(
                    "CREATE TABLE t (n integer CONSTRAINT t_n PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
                try await body(database)
            }
        }

        @Test func `what a transaction did is there when it returns`() async throws {
            try await withTable { database in
                let sum = try await database.transaction("test") { (transaction) throws(StoreError) in
                    for number in 1...3 { _ = try transaction.query(Self.insert, [.int(Int32(number))]) { _ in } }
                    return try transaction.query(sql("SELECT sum(n) FROM t"), []) { (row) throws(StoreError) in
                        try row.bigint(0)
                    }
                }
                #expect(sum == [6])
                try await #expect(database.number("SELECT count(*) FROM t") == 3)
            }
        }

        @Test func `an error thrown by the body undoes everything`() async throws {
            try await withTable(connections: 1) { database in
                await #expect(throws: StoreError.malformedResult) {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        _ = try transaction.query(Self.insert, [.int(1)]) { _ in }
                        throw StoreError.malformedResult
                    }
                }
                try await #expect(database.number("SELECT count(*) FROM t") == 0)
            }
        }

        @Test func `a refusal that the body swallows is not committed around`() async throws {
            try await withTable(connections: 1) { database in
                await #expect(throws: StoreError.rejected(sqlstate: "22012")) {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        _ = try transaction.query(Self.insert, [.int(1)]) { _ in }
                        _ = try? transaction.query(sql("SELECT 1/0"), []) { _ in }
                        _ = try? transaction.query(Self.insert, [.int(2)]) { _ in }
                    }
                }
                try await #expect(database.number("SELECT count(*) FROM t") == 0)
            }
        }

        @Test func `the first statement may be the one that fails`() async throws {
            try await withTable(connections: 1) { database in
                for _ in 0..<3 {
                    await #expect(throws: StoreError.rejected(sqlstate: "22012")) {
                        try await database.transaction("test") { (transaction) throws(StoreError) in
                            _ = try transaction.query(sql("SELECT 1/0"), []) { _ in }
                        }
                    }
                }
                try await #expect(database.number("SELECT 1::bigint") == 1)
            }
        }

        @Test func `a constraint that is checked at COMMIT refuses the whole transaction`() async throws {
            try await withTable(connections: 1) { database in
                await #expect(throws: StoreError.violation(sqlstate: "23505", constraint: "t_n")) {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        _ = try transaction.query(Self.insert, [.int(1)]) { _ in }
                        _ = try transaction.query(Self.insert, [.int(1)]) { _ in }
                    }
                }
                try await #expect(database.number("SELECT count(*) FROM t") == 0)
            }
        }

        @Test func `a body without statements asks nothing of the server`() async throws {
            try await withTable(connections: 1) { database in
                try await #expect(database.transaction("test") { _ in 7 } == 7)
            }
        }

        @Test func `a query after the transaction is none of its business`() async throws {
            try await withTable(connections: 1) { database in
                let kept = Mutex<Connection?>(nil)
                try await database.transaction("test") { (transaction) throws(StoreError) in
                    kept.withLock { $0 = transaction }
                }
                let connection = try #require(kept.withLock { $0 })
                await #expect(throws: StoreError.rejected(sqlstate: "25P01")) {
                    try await connection.query(Self.insert, [.int(1)]) { _ in }
                }
            }
        }

        @Test func `a serialization failure is tried again, three times at most`() async throws {
            try await withTable { database in
                let failing = sql("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", .once)
                let tries = Mutex(0)
                await #expect(throws: StoreError.conflict(sqlstate: "40001")) {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        tries.withLock { $0 += 1 }
                        _ = try transaction.query(failing, []) { _ in }
                    }
                }
                #expect(tries.withLock { $0 } == 4)
                await #expect(throws: StoreError.conflict(sqlstate: "40001")) {
                    try await database.execute(failing, [])
                }

                tries.withLock { $0 = 0 }
                try await database.transaction("test") { (transaction) throws(StoreError) in
                    let number = tries.withLock { count in
                        count += 1
                        return count
                    }
                    _ = try transaction.query(Self.insert, [.int(9)]) { _ in }
                    if number < 3 { _ = try transaction.query(failing, []) { _ in } }
                }
                try await #expect(database.number("SELECT count(*) FROM t") == 1)
            }
        }

        @Test func `transactions that deadlock all succeed in the end`() async throws {
            try await withDatabase(connections: 4) { database, _ in
                try await database.run("CREATE TABLE d (id integer PRIMARY KEY, n integer NOT NULL)")
                try await database.run("INSERT INTO d VALUES (1, 0), (2, 0)")
                // In the transaction, since the pool's sessions were opened before; else a deadlock lasts a second
                // each.
                let hurry = sql("SELECT set_config('deadlock_timeout', '10ms', true)", .once)
                let add = sql("UPDATE d SET n = n + 1 WHERE id = $1", .once)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for index in 0..<20 {
                        group.addTask {
                            try await database.transaction("test") { (transaction) throws(StoreError) in
                                _ = try transaction.query(hurry, []) { _ in }
                                _ = try transaction.query(add, [.int(index % 2 == 0 ? 1 : 2)]) { _ in }
                                _ = try transaction.query(add, [.int(index % 2 == 0 ? 2 : 1)]) { _ in }
                            }
                        }
                    }
                    var failures = 0
                    while let result = await group.nextResult() {
                        if case .failure(let error) = result {
                            failures += 1
                            #expect(
                                error as? StoreError == .conflict(sqlstate: "40P01")
                                    || error as? StoreError == .unavailable(.poolExhausted))
                        }
                    }
                    let sum = try await database.number("SELECT sum(n) FROM d")
                    #expect(sum == Int64(2 * (20 - failures)))
                }
            }
        }

        @Test func `transactions on one connection never interleave`() async throws {
            try await withDatabase(connections: 1, configure: { $0.checkoutTimeout = .seconds(20) }) { database, _ in
                try await database.run("CREATE TABLE c (n integer)")
                try await database.run("INSERT INTO c VALUES (0)")
                let read = sql("SELECT n FROM c", .once)
                let write = sql("UPDATE c SET n = $1", .once)
                await withDiscardingTaskGroup { group in
                    for _ in 0..<50 {
                        group.addTask {
                            try? await database.transaction("test") { (transaction) throws(StoreError) in
                                let number = try transaction.query(read, []) { (row) throws(StoreError) in
                                    try row.int(0)
                                }
                                _ = try transaction.query(write, [.int((number.first ?? 0) + 1)]) { _ in }
                            }
                        }
                    }
                }
                try await #expect(database.number("SELECT n::bigint FROM c") == 50)
            }
        }
    }
}
