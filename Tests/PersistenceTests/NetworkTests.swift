import Persistence
import TestSupport
import Testing

extension DatabaseTests {
    /// Faults between client and server, struck by a proxy at an exact moment.
    @Suite("A network that loses answers")
    struct NetworkTests {
        private static let insert = sql("INSERT INTO t VALUES (1) /* marked */", .once)

        private func withProxy(
            connections: Int = 1, configure: (inout DatabaseConfiguration) -> Void = { _ in },
            _ body: (FaultyProxy, Database, () async throws -> Int) async throws -> Void
        ) async throws {
            let postgres = try await Shared.postgres.value
            let name = try await postgres.createDatabase()
            try await postgres.psql("CREATE TABLE t (n integer)", database: name)
            let proxy = try FaultyProxy(to: postgres)
            defer { proxy.close() }
            var configuration = DatabaseConfiguration(
                conninfo: "host=\(proxy.directory) user=postgres dbname=\(name)", connections: connections)
            configuration.statementTimeout = .seconds(2)
            configure(&configuration)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                try await body(proxy, database) {
                    Int(try await postgres.psql("SELECT count(*) FROM t", database: name).first ?? "") ?? -1
                }
            }
        }

        private func insertInTransaction(_ database: Database) async throws {
            try await database.transaction("test") { (transaction) throws(StoreError) in
                _ = try transaction.query(Self.insert, []) { _ in }
            }
        }

        @Test func `a COMMIT whose acknowledgement is swallowed is in doubt, and had happened`() async throws {
            try await withProxy { proxy, database, count in
                proxy.arm(.swallowAnswer, on: "COMMIT")
                await #expect(throws: StoreError.inDoubt) { try await insertInTransaction(database) }
                #expect(proxy.hasStruck)
                _ = await time { (try? await count()) == 1 }
                let rows = try await count()
                #expect(rows == 1)
                // The connection is replaced and the next caller served.
                let number = try await database.number("SELECT 1::bigint")
                #expect(number == 1)
            }
        }

        @Test func `a COMMIT that never arrives is in doubt too, and has not happened`() async throws {
            try await withProxy { proxy, database, count in
                proxy.arm(.cutBefore, on: "COMMIT")
                await #expect(throws: StoreError.inDoubt) { try await insertInTransaction(database) }
                let rows = try await count()
                #expect(rows == 0)
            }
        }

        @Test func `a COMMIT into silence is in doubt after the statement timeout`() async throws {
            try await withProxy(configure: { $0.statementTimeout = .milliseconds(400) }) { proxy, database, _ in
                proxy.arm(.goSilent, on: "COMMIT")
                let start = ContinuousClock.now
                await #expect(throws: StoreError.inDoubt) { try await insertInTransaction(database) }
                #expect(ContinuousClock.now - start < .seconds(2))
                let number = try await database.number("SELECT 1::bigint")
                #expect(number == 1)
            }
        }

        @Test func `a transaction cut before COMMIT starts again and happens once`() async throws {
            try await withProxy { proxy, database, count in
                // Prepared first, so that the next message with the statement's name is its execution.
                try await insertInTransaction(database)
                proxy.arm(.swallowAnswer, on: "BEGIN")
                try await insertInTransaction(database)
                #expect(proxy.hasStruck)
                let rows = try await count()
                #expect(rows == 2)
            }
        }

        @Test func `the lost answer to a single write is in doubt`() async throws {
            try await withProxy { proxy, database, count in
                try await database.execute(Self.insert, [])
                proxy.arm(.swallowAnswer, on: Self.insert.name)
                await #expect(throws: StoreError.inDoubt) { try await database.execute(Self.insert, []) }
                _ = await time { (try? await count()) == 2 }
                let rows = try await count()
                #expect(rows == 2)
            }
        }

        @Test func `the lost answer to a statement that may be repeated is asked for again`() async throws {
            try await withProxy { proxy, database, _ in
                for effect in [Statement.Effect.readOnly, .idempotent] {
                    let statement = Statement(name: "again_\(effect)", sql: "SELECT 3::bigint", effect: effect)
                    for fault in [FaultyProxy.Fault.swallowAnswer, .cutBefore, .cutAnswerAfter(3), .cutAnswerAfter(20)]
                    {
                        proxy.arm(fault, on: statement.name)
                        let rows = try await database.query(statement, []) { (row) throws(StoreError) in
                            try row.bigint(0)
                        }
                        #expect(rows == [3])
                        #expect(proxy.hasStruck)
                    }
                }
            }
        }

        @Test func `a silent network ends in a timeout for a read, and the pool goes on`() async throws {
            try await withProxy(configure: { $0.statementTimeout = .milliseconds(400) }) { proxy, database, _ in
                let read = sql("SELECT 4::bigint")
                _ = try await database.query(read, []) { _ in }
                proxy.arm(.goSilent, on: read.name)
                let start = ContinuousClock.now
                await #expect(throws: StoreError.timedOut) { try await database.query(read, []) { _ in } }
                #expect(ContinuousClock.now - start < .seconds(2))
                let number = try await database.number("SELECT 1::bigint")
                #expect(number == 1)
            }
        }
    }
}
