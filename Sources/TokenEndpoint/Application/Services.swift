import Grants
import Logging
import Persistence
import ServiceLifecycle

/// Runs the worker that decides requests for codes and links.
struct SignInRequestService: Service {
    let worker: SignInRequestWorker

    func run() async throws {
        await cancelWhenGracefulShutdown { await worker.run() }
    }
}

/// Runs the worker that keys the codes of test identities.
struct TestCodeService: Service {
    let worker: TestCodeWorker

    func run() async throws {
        await cancelWhenGracefulShutdown { await worker.run() }
    }
}

/// Deletes expired rows in bounded batches; an advisory lock lets one node at a time do it
/// (docs/decisions/0000, F14).
struct Sweeper: Service {
    let database: Database
    let logger: Logger

    private static let interval = Duration.seconds(5)
    private static let batch: Int32 = 1000

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    while try await sweep() >= Int(Self.batch), !Task.isCancelled {}
                } catch {
                    logger.debug("expired rows wait: the database is not available", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    private func sweep() async throws(StoreError) -> Int {
        try await database.query(Self.sweep, [.int(Self.batch)]) { (row) throws(StoreError) in Int(try row.bigint(0)) }
            .first ?? 0
    }

    private static let sweep = Statement(name: "sweep", sql: "SELECT postern.sweep($1)", effect: .idempotent)
}

/// Publishes the signing keys that administrators ask for with `admin.rotate_signing_key`, within five seconds.
struct SigningKeyRotation: Service {
    let keys: SigningKeys
    let logger: Logger

    private static let interval = Duration.seconds(2)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    let published = try await keys.carryOutRequests()
                    if published > 0 { logger.notice("signing keys published", metadata: ["count": "\(published)"]) }
                } catch {
                    logger.debug("signing keys wait", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}

/// Whether requests can be served: the database answers, is writable, and has this binary's schema; the configuration
/// can be read; and the clock is right.
struct Readiness: Sendable {
    let database: Database
    let realms: RealmDirectory
    let clock: DatabaseClock

    func reason() async -> String? {
        do {
            let version = try await database.query(Self.schemaVersion, []) { (row) throws(StoreError) in try row.int(0)
            }.first
            let expected = Migrator.schemaVersion
            guard version == expected else {
                return "schema version is \(version ?? 0), this binary needs \(expected): run postern migrate"
            }
        } catch {
            return "the database is not available"
        }
        guard await realms.isAvailable() else {
            return "there is no configuration: the directory of realms cannot be read"
        }
        if clock.isWrong, let seconds = clock.difference {
            return
                "the clocks of this machine and the database differ by \(Int(abs(seconds).rounded())) s: synchronise them"
        }
        return nil
    }

    private static let schemaVersion = Statement(
        name: "schema_version", sql: "SELECT postern.schema_version()", effect: .readOnly)
}
