import Logging
import Persistence
import ServiceLifecycle

/// Deletes expired rows in bounded batches; an advisory lock lets one node at a time do it
/// (docs/decisions/0000, F14).
struct Sweeper: Service {
    let store: MaintenanceStore
    let metrics: Metrics
    let logger: Logger

    private static let interval = Duration.seconds(5)
    private static let batch: Int32 = 1000
    private static let failuresToReport = 3

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var failures = 0
            while !Task.isCancelled {
                do {
                    while try await sweep() >= Int(Self.batch), !Task.isCancelled {}
                    failures = 0
                } catch {
                    failures += 1
                    // A failover takes a try or two. After that an operator needs the cause before the alert comes.
                    logger.log(
                        level: failures == Self.failuresToReport ? .warning : .debug,
                        "expired rows are not removed", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    private func sweep() async throws(StoreError) -> Int {
        let start = ContinuousClock.now
        let rows = try await store.sweep(batch: Self.batch)
        metrics.countSweep(rows: rows, duration: start.duration(to: .now))
        return rows
    }
}
