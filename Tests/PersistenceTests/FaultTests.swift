import Persistence
import Synchronization
import TestSupport
import Testing

extension DatabaseTests {
    /// Faults of the whole server, on a cluster of their own, one after another.
    @Suite("A server that is restarted, killed, or refuses")
    struct FaultTests {
        static let postgres = Task { try await ThrowawayPostgres() }

        private func withFaultyDatabase(
            connections: Int = 4, configure: (inout DatabaseConfiguration) -> Void = { _ in },
            _ body: (ThrowawayPostgres, Database, String) async throws -> Void
        ) async throws {
            let postgres = try await Self.postgres.value
            try await withDatabase(on: postgres, connections: connections, configure: configure) { database, _ in
                try await body(postgres, database, try await database.text("SELECT current_database()::text") ?? "")
            }
        }

        /// Sixteen writers that number their rows; what was answered must be there afterwards.
        private final class Ledger: Sendable {
            struct State {
                var next: Int32 = 0
                var isDone = false
                var acknowledged: Set<Int32> = []
                var doubtful: Set<Int32> = []
            }
            let state = Mutex(State())

            /// Writes rows until told to stop, every second one in a transaction.
            func write(to database: Database, inTransaction: Bool) async {
                let insert = sql("INSERT INTO w VALUES ($1)", .once)
                while true {
                    let number = state.withLock { state -> Int32? in
                        state.next += 1
                        return state.isDone ? nil : state.next
                    }
                    guard let number else { return }
                    do throws(StoreError) {
                        if inTransaction {
                            try await database.transaction("test") { (transaction) throws(StoreError) in
                                _ = try transaction.query(insert, [.int(number)]) { _ in }
                            }
                        } else {
                            try await database.execute(insert, [.int(number)])
                        }
                        state.withLock { _ = $0.acknowledged.insert(number) }
                    } catch {
                        switch error {
                        case .inDoubt: state.withLock { _ = $0.doubtful.insert(number) }
                        case .unavailable: await Task.yield()
                        default: Issue.record("\(error)")
                        }
                    }
                }
            }

            func acknowledged(_ count: Int, after: Int) async {
                _ = await time { state.withLock { $0.acknowledged.count >= after + count } }
            }
        }

        private func auditing(_ database: Database, while fault: () async throws -> Void) async throws {
            try await database.run("CREATE TABLE w (n integer PRIMARY KEY)")
            let ledger = Ledger()
            let writers = (0..<16).map { writer in
                Task { await ledger.write(to: database, inTransaction: writer % 2 == 0) }
            }
            await ledger.acknowledged(100, after: 0)
            try await fault()
            await ledger.acknowledged(100, after: ledger.state.withLock { $0.acknowledged.count })
            ledger.state.withLock { $0.isDone = true }
            for writer in writers { await writer.value }

            let rows = try await database.query(sql("SELECT n FROM w"), []) { (row) throws(StoreError) in try row.int(0)
            }
            let there = Set(rows)
            let found = ledger.state.withLock { $0 }
            #expect(found.acknowledged.subtracting(there).isEmpty, "an acknowledged commit is lost")
            #expect(
                there.subtracting(found.acknowledged).subtracting(found.doubtful).isEmpty,
                "something refused has happened")
            #expect(found.acknowledged.count >= 200)
        }

        @Test(
            "no answer is wrong and service is back within 2 s of a restart",
            arguments: [ThrowawayPostgres.StopMode.fast, .immediate])
        func restart(_ mode: ThrowawayPostgres.StopMode) async throws {
            try await withFaultyDatabase(connections: 8) { postgres, database, _ in
                try await auditing(database) {
                    try await postgres.stop(mode)
                    await #expect(throws: StoreError.self) { try await database.number("SELECT 1::bigint") }
                    try await postgres.start()
                    let recovery = await time { (try? await database.number("SELECT 1::bigint")) == 1 }
                    #expect(try #require(recovery) < .seconds(2))
                }
            }
        }

        @Test func `after a power failure every acknowledged commit is there and service is back within 2 s`()
            async throws
        {
            try await withFaultyDatabase(connections: 8) { postgres, database, _ in
                try await auditing(database) {
                    try await postgres.killEverything()
                    try await postgres.start()
                    let recovery = await time { (try? await database.number("SELECT 1::bigint")) == 1 }
                    #expect(try #require(recovery) < .seconds(2))
                }
            }
        }

        @Test func `while the server is away a caller is refused after the checkout timeout, not later`() async throws {
            try await withFaultyDatabase { postgres, database, _ in
                try await postgres.stop(.fast)
                _ = try? await database.number("SELECT 1::bigint")
                for _ in 0..<3 {
                    let start = ContinuousClock.now
                    await #expect(throws: StoreError.unavailable(.connectFailed)) {
                        try await database.number("SELECT 1::bigint")
                    }
                    #expect(ContinuousClock.now - start < .milliseconds(600))
                }
                try await postgres.start()
            }
        }

        @Test func `sessions ended while idle are noticed before anything is sent`() async throws {
            try await withFaultyDatabase { postgres, database, name in
                try await database.run("CREATE TABLE t (n integer)")
                for round in 1...5 {
                    try await postgres.terminateBackends(of: name)
                    // Neither safe to repeat nor in doubt: it simply works.
                    try await database.run("INSERT INTO t VALUES (1)")
                    let count = try await database.number("SELECT count(*) FROM t")
                    #expect(count == Int64(round))
                }
                _ = await time { database.poolCounts.free == 4 }
                #expect(database.poolCounts.free == 4)
            }
        }

        @Test
        func `a session ended in mid-statement: a read is repeated, a write is in doubt, a transaction starts again`()
            async throws
        {
            try await withFaultyDatabase { postgres, database, name in
                try await database.run("CREATE TABLE t (n integer)")
                // Sleeps only where the advisory lock is held elsewhere: the repetition finds it free.
                func whileBlocked<R: Sendable>(_ work: @escaping @Sendable () async throws -> R) async throws -> Result<
                    R, any Error
                > {
                    let holder = Task {
                        try await postgres.psql("SELECT pg_advisory_lock(1); SELECT pg_sleep(30)", database: name)
                    }
                    _ = await time { (try? await locks(postgres, granted: true)) == 1 }
                    let blocked = Task { try await work() }
                    _ = await time { (try? await locks(postgres, granted: false)) == 1 }
                    try await postgres.terminateBackends(of: name)
                    _ = try? await holder.value
                    return await blocked.result
                }
                let read = sql("SELECT 5::bigint FROM (SELECT pg_advisory_xact_lock(1)) AS l")
                let first = try await whileBlocked {
                    try await database.query(read, []) { (row) throws(StoreError) in try row.bigint(0) }
                }
                #expect(try first.get() == [5])

                let second = try await whileBlocked {
                    try await database.run("INSERT INTO t SELECT 1 FROM (SELECT pg_advisory_xact_lock(1)) AS l")
                }
                #expect(throws: StoreError.inDoubt) { try second.get() }

                let third = try await whileBlocked {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        _ = try transaction.query(sql("INSERT INTO t VALUES (7)", .once), []) { _ in }
                        _ = try transaction.query(read, []) { _ in }
                    }
                }
                try third.get()
                let count = try await database.number("SELECT count(*) FROM t WHERE n = 7")
                #expect(count == 1)
            }
        }

        private func locks(_ postgres: ThrowawayPostgres, granted: Bool) async throws -> Int? {
            try await postgres.psql(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND \(granted ? "" : "NOT ")granted"
            ).first.flatMap { Int($0) }
        }

        @Test func `a server that refuses every connection is unavailable, and used again as soon as it accepts them`()
            async throws
        {
            try await withFaultyDatabase { postgres, database, name in
                try await postgres.refuseConnections(true)
                try await postgres.terminateBackends(of: name)
                _ = await time { (try? await database.number("SELECT 1::bigint")) == nil }
                await #expect(throws: StoreError.unavailable(.connectFailed)) {
                    try await database.number("SELECT 1::bigint")
                }
                try await postgres.refuseConnections(false)
                let recovery = await time { (try? await database.number("SELECT 1::bigint")) == 1 }
                #expect(try #require(recovery) < .seconds(2))
            }
        }

        @Test func `a server without a free connection slot leaves the pool smaller, not broken`() async throws {
            let postgres = try await ThrowawayPostgres(settings: [
                "max_connections = 6", "superuser_reserved_connections = 3",
            ])
            try await postgres.psql("CREATE ROLE app LOGIN")
            let configuration = DatabaseConfiguration(conninfo: postgres.conninfo(user: "app"), connections: 8)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                _ = await time { database.poolCounts.free >= 1 }
                for _ in 0..<50 {
                    let number = try await database.number("SELECT 1::bigint")
                    #expect(number == 1)
                }
            }
            try await postgres.stop(.immediate)
        }

        @Test func `a server that turns read-only is left, and taken again when it accepts writes`() async throws {
            try await withFaultyDatabase(connections: 2) { postgres, database, name in
                try await database.run("CREATE TABLE t (n integer)")
                try await postgres.psql("ALTER DATABASE \(name) SET default_transaction_read_only = on")
                try await postgres.terminateBackends(of: name)
                _ = await time { (try? await database.number("SELECT 1::bigint")) == nil }
                await #expect(throws: StoreError.self) { try await database.run("INSERT INTO t VALUES (1)") }
                try await postgres.psql("ALTER DATABASE \(name) SET default_transaction_read_only = off")
                let recovery = await time { (try? await database.run("INSERT INTO t VALUES (1)")) != nil }
                #expect(try #require(recovery) < .seconds(2))
            }
        }

        @Test func `of several hosts the one that answers is used`() async throws {
            let postgres = try await Self.postgres.value
            let configuration = DatabaseConfiguration(
                conninfo: "host=/nonexistent,\(postgres.directory) user=postgres dbname=postgres", connections: 1)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                let number = try await database.number("SELECT 1::bigint")
                #expect(number == 1)
            }
        }

        @Test func `new connections read the connection string afresh`() async throws {
            let postgres = try await Self.postgres.value
            try await postgres.psql("CREATE ROLE before LOGIN; CREATE ROLE after LOGIN")
            let user = Mutex("before")
            let configuration = DatabaseConfiguration(
                conninfoSource: { [directory = postgres.directory] in
                    "host=\(directory) dbname=postgres user=\(user.withLock { $0 })"
                }, connections: 2)
            try await withRunning(Database(configuration: configuration, logger: quiet)) { database in
                var name = try await database.text("SELECT current_user::text")
                #expect(name == "before")
                user.withLock { $0 = "after" }
                try await postgres.psql(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'before'")
                name = try await database.text("SELECT current_user::text")
                #expect(name == "after")
            }
        }

        @Test func `a malformed connection string is not repeated in what is reported`() async throws {
            await #expect(throws: MigrationError.cannotConnect("the connection string is malformed")) {
                try await Migrator(conninfo: "host=x password='hunter2", migrations: [], functions: []).standing()
            }
        }
    }
}
