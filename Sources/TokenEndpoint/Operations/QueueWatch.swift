import Logging
import Persistence
import ServiceLifecycle
import Synchronization

/// Looks every ten seconds how long mail and undecided requests wait, for the metrics. At most twenty realms are named per queue.
struct QueueWatch: Service {
    let queues: QueueStore
    let gauges: QueueGauges
    let logger: Logger

    private static let interval = Duration.seconds(10)
    private static let top: Int32 = 20

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    gauges.set(try await queues.figures(top: Self.top))
                } catch {
                    // An old figure would be taken for a new one.
                    gauges.set([])
                    logger.debug("queues cannot be measured", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}

/// The figures of the queues in the Prometheus text format. Labels are the names of queues and realms' slugs.
final class QueueGauges: Sendable {
    private let figures = Mutex<[QueueStore.Figure]>([])

    func set(_ figures: [QueueStore.Figure]) {
        self.figures.withLock { $0 = figures }
    }

    func lines() -> [String] {
        let figures = figures.withLock { $0 }
        guard !figures.isEmpty else { return [] }
        func gauge(_ name: String, ofRealms: Bool, _ value: (QueueStore.Figure) -> String) -> [String] {
            ["# TYPE \(name) gauge"]
                + figures.filter { ($0.realm != nil) == ofRealms }.map { figure in
                    let realm = figure.realm.map { ",realm=\"\($0)\"" } ?? ""
                    return "\(name){queue=\"\(figure.queue)\"\(realm)} \(value(figure))"
                }.sorted()
        }
        return gauge("postern_queue_entries", ofRealms: false) { "\($0.queued)" }
            + gauge("postern_queue_oldest_seconds", ofRealms: false) { "\($0.oldest)" }
            + gauge("postern_queue_realm_entries", ofRealms: true) { "\($0.queued)" }
            + gauge("postern_queue_realm_oldest_seconds", ofRealms: true) { "\($0.oldest)" }
    }
}
