import Foundation
import Logging
import Persistence
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import Delivery

/// A database with the real schema, a realm and the means to queue mails and to look at them.
struct OutboxFixture: Sendable {
    /// A queued mail as the test sees it.
    struct State: Sendable, Equatable {
        let state: String
        let attempts: Int
        let lastError: String?
        let hasPayload: Bool
        /// From the moment at which the row was read, by a clock that is read after it: never more than there were when
        /// the row was written.
        let secondsUntilDue: Double
        /// From the moment at which the row was made: never less than the pause that the last failure asked for.
        let secondsFromQueueToDue: Double
    }

    let postgres: ThrowawayPostgres
    let administrator: Database
    let application: Database
    let keyring: Keyring
    let realm = UUIDValue.random()
    let logs = LogCapture()

    /// A cluster with the schema in a database to copy: the roles of the schema belong to the cluster, and making them
    /// is not for two migrations at a time.
    private struct Cluster: Sendable {
        let postgres: ThrowawayPostgres
        let schema: String

        init() async throws {
            postgres = try await ThrowawayPostgres()
            schema = try await postgres.createDatabase()
            try await Migrator(conninfo: postgres.conninfo(database: schema)).migrate()
            try await postgres.psql("CREATE ROLE app LOGIN IN ROLE postern_app", database: schema)
        }
    }

    private static let shared = Task { try await Cluster() }
    private static let copies = Atomic(0)

    /// Runs `body` with a new database on the shared cluster, or on one of its own that it may stop and start.
    static func run(onOwnCluster: Bool = false, _ body: @Sendable (OutboxFixture) async throws -> Void) async throws {
        let cluster = onOwnCluster ? try await Cluster() : try await shared.value
        let postgres = cluster.postgres
        let name = "copy_\(copies.add(1, ordering: .relaxed).newValue)"
        try await postgres.psql("CREATE DATABASE \(name) TEMPLATE \(cluster.schema)")
        func database(_ user: String) -> Database {
            Database(
                configuration: DatabaseConfiguration(
                    conninfo: postgres.conninfo(database: name, user: user), connections: 3),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }
        let fixture = OutboxFixture(
            postgres: postgres, administrator: database("postgres"), application: database("app"),
            keyring: try Keyring(parsing: Keyring.generateLine()))
        try await withThrowingTaskGroup { group in
            group.addTask { await fixture.administrator.run() }
            group.addTask { await fixture.application.run() }
            try await eventually {
                fixture.administrator.poolCounts.free > 0 && fixture.application.poolCounts.free > 0
            }
            try await fixture.administrator.execute(
                Statement(
                    name: "realm",
                    sql: "INSERT INTO postern.realm (id, slug, display_name, primary_domain) "
                        + "VALUES ($1, 'acme', 'Acme', 'auth.example.com')", effect: .once),
                [.uuid(fixture.realm)])
            try await body(fixture)
            group.cancelAll()
        }
    }

    /// Queues a mail `age` seconds ago that was tried `attempts` times. - Returns: its id.
    @discardableResult
    func queue(
        _ content: MailPayload.Content = .otp(code: "123456", minutes: 10), to recipient: String = "ada@example.com",
        age: Double = 0, attempts: Int32 = 0, tampered: Bool = false, realm: UUIDValue? = nil
    ) async throws -> UUIDValue {
        let realm = realm ?? self.realm
        let id = UUIDValue.random()
        let payload = MailPayload(originHost: "auth.example.com", content: content)
        var sealed = try payload.sealed(under: keyring, realm: realm, mail: id)
        if tampered { sealed[20] ^= 1 }
        try await administrator.execute(
            Statement(
                name: "queue",
                sql: """
                    INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, payload, attempts, created_at,
                                                     not_before, expires_at)
                    VALUES ($1, $2, $3, $4, $5, $7, now() - make_interval(secs => $6), now() - make_interval(secs => $6),
                            now() - make_interval(secs => $6) + interval '24 hours')
                    """, effect: .once),
            [
                .uuid(realm), .uuid(id), .text(recipient), .text(payload.template), .bytes(sealed), .double(age),
                .int(attempts),
            ])
        return id
    }

    /// One more realm.
    func another(_ slug: String) async throws -> UUIDValue {
        let id = UUIDValue.random()
        try await administrator.execute(
            Statement(
                name: "another_realm",
                sql:
                    "INSERT INTO postern.realm (id, slug, display_name, primary_domain) VALUES ($1, $2, $2, $2 || '.example')",
                effect: .once),
            [.uuid(id), .text(slug)])
        return id
    }

    /// Queues an unsealed notice. - Returns: its id.
    func queue(
        notice template: String, detail: String = "{}", to recipient: String = "ada@example.com"
    ) async throws -> UUIDValue {
        let id = UUIDValue.random()
        try await administrator.execute(
            Statement(
                name: "queue_notice",
                sql:
                    "INSERT INTO postern.mail_outbox (realm_id, id, recipient, template, detail) VALUES ($1, $2, $3, $4, $5)",
                effect: .once),
            [.uuid(realm), .uuid(id), .text(recipient), .text(template), .json(detail)])
        return id
    }

    /// Queues a message to a phone. - Returns: its id.
    func queue(
        by channel: Channel, code: String = "123456", to recipient: String = "+4915112345678", locale: String? = nil,
        lifetime: Double = 600
    ) async throws -> UUIDValue {
        let payload = MailPayload(
            originHost: "auth.example.com", content: .otp(code: code, minutes: 10))
        let id = UUIDValue.random()
        try await administrator.execute(
            Statement(
                name: "queue_message",
                sql: """
                    INSERT INTO postern.mail_outbox (realm_id, id, channel, recipient, template, purpose, payload, locale,
                                                     expires_at)
                    VALUES ($1, $2, $3, $4, 'otp', 'sign-in', $5, $6, now() + make_interval(secs => $7))
                    """, effect: .once),
            [
                .uuid(realm), .uuid(id), .text(channel.rawValue), .text(recipient),
                .bytes(try payload.sealed(under: keyring, realm: realm, mail: id)),
                locale.map { .text($0) } ?? .null, .double(lifetime),
            ])
        return id
    }

    /// Calls a function of an administrator: `admin.put_channel(…)`.
    func call(_ function: String) async throws {
        try await administrator.execute(
            Statement(
                name: "call \(UUIDValue.random())", sql: "DO $do$ BEGIN PERFORM \(function); END $do$", effect: .once),
            [])
    }

    /// Moves a mail's life `seconds` into the past, as if so much time had gone by.
    func shift(_ mail: UUIDValue, by seconds: Double) async throws {
        try await administrator.execute(
            Statement(
                name: "shift",
                sql: """
                    UPDATE postern.mail_outbox SET created_at = created_at - make_interval(secs => $2),
                           not_before = not_before - make_interval(secs => $2),
                           expires_at = expires_at - make_interval(secs => $2)
                     WHERE id = $1
                    """, effect: .once),
            [.uuid(mail), .double(seconds)])
    }

    /// Makes a mail due, as if its lease or its pause were over.
    func endLease(of mail: UUIDValue) async throws {
        try await administrator.execute(
            Statement(
                name: "end_lease", sql: "UPDATE postern.mail_outbox SET not_before = now() WHERE id = $1", effect: .once
            ),
            [.uuid(mail)])
    }

    /// What the row of a mail says.
    func state(of mail: UUIDValue) async throws -> State {
        let rows = try await administrator.query(
            Statement(
                name: "state",
                sql: """
                    SELECT state, attempts, last_error, payload IS NOT NULL,
                           extract(epoch FROM not_before - clock_timestamp())::float8,
                           extract(epoch FROM not_before - created_at)::float8
                      FROM postern.mail_outbox WHERE id = $1
                    """, effect: .readOnly),
            [.uuid(mail)]
        ) { (row) throws(StoreError) in
            State(
                state: try row.text(0), attempts: Int(try row.int(1)), lastError: try row.textOrNil(2),
                hasPayload: try row.bool(3), secondsUntilDue: try row.double(4),
                secondsFromQueueToDue: try row.double(5))
        }
        return try #require(rows.first)
    }

    /// Waits until the row of a mail is as wanted, 30 s at most. - Returns: the row then.
    @discardableResult
    func wait(for mail: UUIDValue, until isWanted: (State) -> Bool) async throws -> State {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            let state = try await state(of: mail)
            if isWanted(state) { return state }
            try #require(ContinuousClock.now < deadline, "still \(state)")
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A sender of this database that looks every 50 ms.
    func sender(
        _ transport: any MailTransport, concurrency: Int = 4, realmShare: Int = 4, mailsPerSecond: Int? = nil,
        clock: ManualClock? = nil, calls: OutgoingCalls? = nil
    ) throws -> OutboxSender {
        var configuration = OutboxSender.Configuration()
        configuration.concurrency = concurrency
        configuration.realmShare = realmShare
        configuration.mailsPerSecond = mailsPerSecond
        if let clock { configuration.clock = { clock.read() } }
        configuration.pollInterval = .milliseconds(50)
        return try OutboxSender(
            database: application, keyring: keyring,
            sender: try #require(Mailbox(parsing: "no-reply@mail.example.com")),
            transport: transport, calls: calls, configuration: configuration, logger: logs.logger)
    }

    /// Runs `body` while a sender works.
    func sending<R: Sendable>(
        _ transport: any MailTransport, calls: OutgoingCalls? = nil, _ body: (OutboxSender) async throws -> R
    ) async throws -> R {
        let sender = try sender(transport, calls: calls)
        let running = Task { await sender.run() }
        do {
            let result = try await body(sender)
            running.cancel()
            await running.value
            return result
        } catch {
            running.cancel()
            throw error
        }
    }
}
