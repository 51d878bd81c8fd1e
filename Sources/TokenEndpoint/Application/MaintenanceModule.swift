import Grants
import Persistence
import ServiceLifecycle

/// What a cluster needs whatever the server offers: its configuration is followed, old rows are swept, and the
/// lines of the key file that are still in use are counted.
struct MaintenanceModule: Module {
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
    }

    func services(in cluster: Database.Part) -> [any Service] {
        [
            ConfigurationWatch(
                database: shared.database, part: cluster, realms: shared.realms.clusters[cluster.index],
                waiting: shared.waiting, databaseClock: shared.databaseClock, logger: shared.logger
            )
            .listener(clock: shared.databaseClock.machine),
            Sweeper(store: MaintenanceStore(cluster.database), metrics: shared.metrics, logger: shared.logger),
        ]
    }

    var services: [any Service] {
        [
            KeyLineService(
                stores: shared.database.parts.map { KeyLineStore($0.database) }, keyring: shared.keyring,
                metrics: shared.metrics, logger: shared.logger)
        ]
    }
}
