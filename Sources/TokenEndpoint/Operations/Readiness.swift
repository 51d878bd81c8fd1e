import Grants
import Persistence

/// Whether requests can be served: the database answers, is writable, and has a schema that this binary works with; the
/// configuration can be read; and the clock is right.
struct Readiness: Sendable {
    /// Of each cluster.
    let stores: [MaintenanceStore]
    let realms: RealmDirectory
    let clock: DatabaseClock

    /// A node serves the realms of the clusters that answer, so that one that does not makes no node unready.
    func reason() async -> String? {
        var problem: String?
        for store in stores {
            guard let found = await reason(of: store) else { return await reasonBesideDatabase() }
            problem = problem ?? found
        }
        return problem
    }

    private func reason(of store: MaintenanceStore) async -> String? {
        do {
            let schema = try await store.schemaRange()
            if let obstacle = SchemaRange.own.obstacle(
                functionSet: schema.functionSet, oldestBinary: schema.oldestBinary)
            {
                return obstacle
            }
        } catch {
            return "the database is not available"
        }
        return nil
    }

    private func reasonBesideDatabase() async -> String? {
        guard await realms.isAvailable() else {
            return "there is no configuration: the directory of realms cannot be read"
        }
        if clock.isWrong, let seconds = clock.difference {
            let rounded = Int(abs(seconds).rounded())
            return "the clocks of this machine and the database differ by \(rounded) s: synchronise them"
        }
        return nil
    }
}
