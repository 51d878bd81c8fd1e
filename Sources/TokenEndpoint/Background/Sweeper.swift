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
        let start = ContinuousClock.now
        let rows = try await store.sweep(batch: Self.batch)
        metrics.countSweep(rows: rows, duration: start.duration(to: .now))
        return rows
    }
}
