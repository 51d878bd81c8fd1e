import Logging
import Persistence
import ServiceLifecycle
import TestSupport
import Testing

extension DatabaseTests {
    @Suite("Cancellation and the bounded pool")
    struct CancellationTests {
        @Test func `cancelling the task ends a read on the server and keeps the connection`() async throws {
            try await withDatabase(connections: 1) { database, configuration in
                let backend = try await database.number("SELECT pg_backend_pid()::bigint")
                let sleeper = Task { try await database.number("SELECT 1::bigint FROM pg_sleep(30)") }
                try await #expect(isSleeping(in: configuration))
                sleeper.cancel()
                await #expect(throws: StoreError.cancelled) { try await sleeper.value }
                try await #expect(database.number("SELECT pg_backend_pid()::bigint") == backend)
                let left = try await sleepers(in: configuration)
                #expect(left == 0)
            }
        }

        @Test func `cancelling the task undoes a transaction and keeps the connection`() async throws {
            try await withDatabase(connections: 1) { database, configuration in
                try await database.run("CREATE TABLE t (n integer)")
                let sleeper = Task {
                    try await database.transaction("test") { (transaction) throws(StoreError) in
                        _ = try transaction.query(sql("INSERT INTO t VALUES (1)", .once), []) { _ in }
                        _ = try transaction.query(sql("SELECT pg_sleep(30)", .once), []) { _ in }
                    }
                }
                try await #expect(isSleeping(in: configuration))
                sleeper.cancel()
                await #expect(throws: StoreError.cancelled) { try await sleeper.value }
                try await #expect(database.number("SELECT count(*) FROM t") == 0)
            }
        }

        @Test func `a write under way finishes although nobody waits for it any more`() async throws {
            try await withDatabase(connections: 1) { database, configuration in
                try await database.run("CREATE TABLE t (n integer)")
                let writer = Task { try await database.run("INSERT INTO t SELECT 1 FROM pg_sleep(1)") }
                try await #expect(isSleeping(in: configuration))
                writer.cancel()
                try await writer.value
                try await #expect(database.number("SELECT count(*) FROM t") == 1)
            }
        }

        @Test func `a task that is cancelled before it asks sends nothing`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                try await database.run("CREATE TABLE t (n integer)")
                let task = Task {
                    while !Task.isCancelled { await Task.yield() }
                    try await database.run("INSERT INTO t VALUES (1)")
                }
                task.cancel()
                await #expect(throws: StoreError.cancelled) { try await task.value }
                try await #expect(database.number("SELECT count(*) FROM t") == 0)
            }
        }

        @Test func `a late cancellation does not hit the next statement on the connection`() async throws {
            try await withDatabase(connections: 1) { database, _ in
                for _ in 0..<200 {
                    let task = Task { try await database.number("SELECT 1::bigint") }
                    await Task.yield()
                    task.cancel()
                    _ = try? await task.value
                    try await #expect(database.number("SELECT 2::bigint") == 2)
                }
            }
        }

        @Test func `when every connection is busy callers fail after the checkout timeout, and the pool recovers`()
            async throws
        {
            try await withDatabase(connections: 1, configure: { $0.checkoutTimeout = .milliseconds(100) }) {
                database, configuration in
                let sleeper = Task { try await database.number("SELECT 1::bigint FROM pg_sleep(30)") }
                try await #expect(isSleeping(in: configuration))
                let start = ContinuousClock.now
                await #expect(throws: StoreError.unavailable(.poolExhausted)) {
                    try await database.number("SELECT 1::bigint")
                }
                #expect(ContinuousClock.now - start >= .milliseconds(100))
                #expect(ContinuousClock.now - start < .milliseconds(600))
                sleeper.cancel()
                _ = try? await sleeper.value
                try await #expect(database.number("SELECT 1::bigint") == 1)
            }
        }

        @Test func `callers beyond the number that may wait fail at once`() async throws {
            try await withDatabase(
                connections: 1,
                configure: {
                    $0.checkoutTimeout = .seconds(5)
                    $0.maximumWaiters = 3
                }
            ) { database, configuration in
                let sleeper = Task { try await database.number("SELECT 1::bigint FROM pg_sleep(30)") }
                try await #expect(isSleeping(in: configuration))
                let waiting = (0..<3).map { _ in Task { try await database.number("SELECT 1::bigint") } }
                _ = await time { database.poolCounts.waiting == 3 }
                let start = ContinuousClock.now
                await #expect(throws: StoreError.unavailable(.tooManyWaiters)) {
                    try await database.number("SELECT 1::bigint")
                }
                #expect(ContinuousClock.now - start < .milliseconds(200))
                // One of those who wait gives up; the others are served.
                waiting[1].cancel()
                await #expect(throws: StoreError.cancelled) { try await waiting[1].value }
                sleeper.cancel()
                try await #expect(waiting[0].value == 1)
                try await #expect(waiting[2].value == 1)
            }
        }

        @Test func `a thousand callers share four connections`() async throws {
            try await withDatabase(connections: 4, configure: { $0.checkoutTimeout = .seconds(10) }) { database, _ in
                try await withThrowingTaskGroup(of: Int64?.self) { group in
                    for number in 0..<1000 {
                        group.addTask {
                            try await database.query(sql("SELECT $1::bigint"), [.bigint(Int64(number))]) {
                                (row) throws(StoreError) in
                                try row.bigint(0)
                            }.first
                        }
                    }
                    var sum: Int64 = 0
                    for try await number in group { sum += number ?? 0 }
                    #expect(sum == 999 * 1000 / 2)
                }
                #expect(database.poolCounts.free == 4)
            }
        }

        @Test func `a database that does not run fails after the checkout timeout`() async throws {
            let database = Database(configuration: DatabaseConfiguration(conninfo: "host=/nowhere"), logger: quiet)
            await #expect(throws: StoreError.unavailable(.notRunning)) { try await database.number("SELECT 1::bigint") }
        }

        @Test func `work under way ends before the database does`() async throws {
            let postgres = try await Shared.postgres.value
            let configuration = DatabaseConfiguration(conninfo: postgres.conninfo(), connections: 2)
            let database = Database(configuration: configuration, logger: quiet)
            let group = ServiceGroup(services: [database], logger: quiet)
            let running = Task { try await group.run() }
            let work = Task { try await database.number("SELECT 1::bigint FROM pg_sleep(0.5)") }
            try await #expect(isSleeping(in: configuration))
            await group.triggerGracefulShutdown()
            _ = await time { (try? await database.number("SELECT 2::bigint")) == nil }
            await #expect(throws: StoreError.unavailable(.notRunning)) { try await database.number("SELECT 2::bigint") }
            try await #expect(work.value == 1)
            try await running.value
            #expect(database.poolCounts.free == 0)
        }

        private func sleepers(in configuration: DatabaseConfiguration) async throws -> Int {
            let database = configuration.conninfo.split(separator: "dbname=").last.map { $0.prefix { $0 != " " } } ?? ""
            let rows = try await Shared.postgres.value.psql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = '\(database)' AND wait_event = 'PgSleep'")
            return rows.first.flatMap { Int($0) } ?? -1
        }

        private func isSleeping(in configuration: DatabaseConfiguration) async throws -> Bool {
            await time { (try? await sleepers(in: configuration)) == 1 } != nil
        }
    }
}
