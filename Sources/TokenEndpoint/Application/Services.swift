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
    let store: MaintenanceStore
    let logger: Logger

    private static let interval = Duration.seconds(5)
    private static let batch: Int32 = 1000

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    while try await store.sweep(batch: Self.batch) >= Int(Self.batch), !Task.isCancelled {}
                } catch {
                    logger.debug("expired rows wait: the database is not available", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
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
    let store: MaintenanceStore
    let realms: RealmDirectory
    let clock: DatabaseClock

    func reason() async -> String? {
        do {
            let version = try await store.schemaVersion()
            let expected = Migrator.schemaVersion
            guard version == expected else {
                return "schema version is \(version), this binary needs \(expected): run postern migrate"
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
}
