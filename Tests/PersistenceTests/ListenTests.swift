import Persistence
import Synchronization
import TestSupport
import Testing

extension DatabaseTests {
    @Suite("Notifications")
    struct ListenTests {
        static let postgres = Task { try await ThrowawayPostgres() }

        final class Log: Sendable {
            private let events = Mutex<[ListenConnection.Event]>([])
            func append(_ event: ListenConnection.Event) { events.withLock { $0.append(event) } }
            var all: [ListenConnection.Event] { events.withLock { $0 } }
            func count(_ event: ListenConnection.Event) -> Int { all.count { $0 == event } }
        }

        private func listening(
            channels: [String] = ["news"], heartbeat: Statement = sql("SELECT max(n)::text FROM stamp"),
            _ body: (ThrowawayPostgres, String, Log) async throws -> Void
        ) async throws {
            let postgres = try await Self.postgres.value
            let name = try await postgres.createDatabase()
            try await postgres.psql("CREATE TABLE stamp (n integer); INSERT INTO stamp VALUES (1)", database: name)
            let log = Log()
            let connection = ListenConnection(
                configuration: DatabaseConfiguration(conninfo: postgres.conninfo(database: name)), channels: channels,
                heartbeat: heartbeat, interval: .milliseconds(300), logger: quiet, onEvent: log.append)
            let running = Task { await connection.run() }
            _ = await time { log.all.contains(.connected) }
            try await body(postgres, name, log)
            running.cancel()
            await running.value
            #expect(log.all.last == .lost)
        }

        @Test func `a notification arrives long before the next heartbeat`() async throws {
            try await listening { postgres, name, log in
                _ = await time { log.all.contains(.heartbeat("1")) }
                try await postgres.psql("NOTIFY news, 'hello'", database: name)
                let delay = await time(until: { log.all.contains(.notification(channel: "news", payload: "hello")) })
                #expect(try #require(delay) < .milliseconds(200))
                #expect(log.all.first == .connected)
            }
        }

        @Test func `channel names are quoted`() async throws {
            let channel = "Odd \"name; DROP TABLE stamp"
            try await listening(channels: ["plain", channel]) { postgres, name, log in
                try await postgres.psql("SELECT pg_notify('Odd \"name; DROP TABLE stamp', '')", database: name)
                let delay = await time { log.all.contains(.notification(channel: channel, payload: "")) }
                #expect(delay != nil)
            }
        }

        @Test func `the heartbeat shows a change that nobody announced`() async throws {
            try await listening { postgres, name, log in
                try await postgres.psql("INSERT INTO stamp VALUES (2)", database: name)
                let delay = await time { log.all.contains(.heartbeat("2")) }
                #expect(try #require(delay) < .seconds(1))
            }
        }

        @Test func `a terminated session is reported as lost at once, and listens again`() async throws {
            try await listening { postgres, name, log in
                try await postgres.terminateBackends(of: name)
                let lost = await time { log.count(.lost) == 1 }
                #expect(try #require(lost) < .milliseconds(250))
                let back = await time { log.count(.connected) == 2 }
                #expect(try #require(back) < .seconds(2))
                try await postgres.psql("NOTIFY news, 'again'", database: name)
                let heard = await time { log.all.contains(.notification(channel: "news", payload: "again")) }
                #expect(heard != nil)
            }
        }

        @Test func `it listens again within 2 s of the server's return`() async throws {
            try await listening { postgres, _, log in
                try await postgres.stop(.immediate)
                let lost = await time { log.count(.lost) == 1 }
                #expect(lost != nil)
                try await postgres.start()
                let back = await time { log.count(.connected) == 2 }
                #expect(try #require(back) < .seconds(2))
            }
        }

        @Test func `a server that is alive but does not answer is reported as lost`() async throws {
            try await listening { postgres, name, log in
                _ = await time { log.all.contains(.heartbeat("1")) }
                let processes = try await postgres.processes(of: name)
                for process in processes { Command.pause(process) }
                defer { for process in processes { Command.terminate(process) } }
                let lost = await time { log.count(.lost) == 1 }
                #expect(try #require(lost) < .seconds(2))
            }
        }
    }
}
