import Grants
import Persistence
import ServiceLifecycle

/// Audit events for operators' webhooks. No endpoint of its own: administrators register webhooks in the database.
struct EventModule: Module {
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
    }

    func services(in cluster: Database.Part) -> [any Service] {
        let metrics = shared.metrics
        return [
            EventService(
                sender: EventSender(
                    WebhookStore(cluster.database),
                    tokens: EventTokens(
                        realms: shared.realms, signingKeys: shared.signingKeys, clock: shared.clock),
                    post: shared.above.postEvent, count: { metrics.countEvent(outcome: $0) }, logger: shared.logger),
                executor: shared.above.eventExecutor)
        ]
    }
}
