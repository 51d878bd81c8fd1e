import Grants
import Persistence
import ServiceLifecycle

/// One capability, composed: what it adds to the server. A new one is a module of its own and one line in
/// ``Server/compose(_:database:keyring:parts:metrics:tracer:logger:)``.
protocol Module {
    /// Its grants. The token endpoint finds a grant by its name: their order means nothing.
    var grants: [any Grant] { get }
    /// Its endpoints. A request finds its route by the path: their order means nothing.
    func routes(_ front: Front) -> [Route]
    /// What works beside requests in one cluster, in start order; stopped in reverse order.
    func services(in cluster: Database.Part) throws -> [any Service]
    /// What works beside requests once for all clusters; started after the work in the clusters.
    var services: [any Service] { get }
}

extension Module {
    var grants: [any Grant] { [] }
    func routes(_ front: Front) -> [Route] { [] }
    func services(in cluster: Database.Part) throws -> [any Service] { [] }
    var services: [any Service] { [] }
}

/// What endpoints need that is made of all modules.
struct Front {
    let service: TokenService
    let pages: any ComposedPages
}

/// Wakes the worker of a queue, one in each cluster.
struct ClusterSignals: Sendable {
    private let signals: [WakeSignal]

    init(_ database: Database) {
        signals = database.parts.map { _ in WakeSignal() }
    }

    /// The signal of one cluster.
    subscript(cluster: Database.Part) -> WakeSignal { signals[cluster.index] }

    /// Wakes all of them: which cluster a realm lies in does not matter to who queues.
    func signal() {
        for signal in signals { signal.signal() }
    }

    /// Wakes all of them when the answer of the request under way has left.
    func signal(after deadline: UniformDeadline) {
        deadline.whenAnswered { signal() }
    }
}
