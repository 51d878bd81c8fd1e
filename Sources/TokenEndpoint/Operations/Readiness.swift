import Grants
import Persistence

/// Whether requests can be served: the database answers, is writable, and has a schema that this binary works with; the
/// configuration can be read; and the clock is right.
struct Readiness: Sendable {
    let store: MaintenanceStore
    let realms: RealmDirectory
    let clock: DatabaseClock

    func reason() async -> String? {
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
