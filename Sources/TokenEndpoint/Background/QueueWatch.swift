import Logging
import Persistence
import ServiceLifecycle
import Synchronization
import Telemetry

/// Looks every ten seconds how long messages, undecided requests and events wait, for the metrics. At most twenty
/// realms are named per queue, and twenty webhooks.
struct QueueWatch: Service {
    /// Of each cluster.
    let stores: [(queues: QueueStore, webhooks: WebhookStore)]
    let gauges: QueueGauges
    let logger: Logger

    private static let interval = Duration.seconds(10)
    private static let top: Int32 = 20

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    var queues: [QueueStore.Figure] = []
                    var webhooks: [WebhookStore.Figure] = []
                    for store in stores {
                        queues += try await store.queues.figures(top: Self.top)
                        webhooks += try await store.webhooks.figures(top: Self.top)
                    }
                    gauges.set(queues, webhooks)
                } catch {
                    // An old figure would be taken for a new one.
                    gauges.set([], [])
                    logger.debug("queues cannot be measured", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}

/// The figures of the queues. Labels are the names of queues and webhooks, and realms' slugs.
final class QueueGauges: Sendable {
    private let figures = Mutex<(queues: [QueueStore.Figure], webhooks: [WebhookStore.Figure])>(([], []))

    func set(_ queues: [QueueStore.Figure], _ webhooks: [WebhookStore.Figure]) {
        figures.withLock { $0 = (queues, webhooks) }
    }

    /// All of one name one after another.
    func gauges() -> [MetricSample] {
        let (figures, webhooks) = figures.withLock { $0 }
        let realms = figures.filter { $0.realm != nil }
        // Each cluster has totals.
        let totals = Dictionary(grouping: figures.filter { $0.realm == nil }, by: \.queue).values.map(
            QueueStore.Figure.sum
        )
        .sorted { $0.queue < $1.queue }
        func gauges(
            _ name: String, _ figures: [QueueStore.Figure], _ value: (QueueStore.Figure) -> Double
        ) -> [MetricSample] {
            figures.map { figure in
                guard let realm = figure.realm else {
                    return MetricSample(name, ["queue": figure.queue], value(figure))
                }
                return MetricSample(name, ["queue": figure.queue, "realm": realm], value(figure))
            }
        }
        return gauges("postern_queue_entries", totals) { Double($0.queued) }
            + gauges("postern_queue_oldest_seconds", totals, \.oldest)
            + gauges("postern_queue_realm_entries", realms) { Double($0.queued) }
            + gauges("postern_queue_realm_oldest_seconds", realms, \.oldest)
            + Self.gauges("postern_webhook_lag_seconds", webhooks, \.lag)
            + Self.gauges("postern_webhook_pending_events", webhooks) { Double($0.pending) }
            + Self.gauges("postern_webhook_refused_events", webhooks) { Double($0.setAside) }
    }

    private static func gauges(
        _ name: String, _ figures: [WebhookStore.Figure], _ value: (WebhookStore.Figure) -> Double
    ) -> [MetricSample] {
        figures.map {
            MetricSample(name, ["realm": $0.realm, "webhook": $0.name], value($0))
        }
    }
}
