import Grants
import Persistence
import ServiceLifecycle

/// The senders of the messages that all capabilities queue.
struct DeliveryModule: Module {
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
    }

    func services(in cluster: Database.Part) throws -> [any Service] {
        let metrics = shared.metrics
        let sender = try shared.above.delivery?(
            DeliveryParts(
                database: cluster.database,
                hookTokens: HookTokens(keys: shared.signingKeys, realms: shared.realms, clock: shared.clock),
                wakes: shared.delivery[cluster],
                count: { metrics.countMessage(channel: $0, outcome: $1) }))
        return [sender].compactMap(\.self)
    }
}
