import Synchronization
import Tracing

/// What the statements of a transaction did, for its spans. A transaction that is tried again begins anew.
final class TransactionTrail: Sendable {
    /// One statement.
    struct Step: Sendable {
        let function: String
        let began: DefaultTracerClock.Timestamp
        let ended: DefaultTracerClock.Timestamp
        let outcome: Result<Int, StoreError>
    }

    private let kept = Mutex<[Step]>([])

    /// Of the last attempt.
    var steps: [Step] { kept.withLock { $0 } }

    func restart() {
        kept.withLock { $0 = [] }
    }

    func add(_ function: String, since began: DefaultTracerClock.Timestamp, _ outcome: Result<Int, StoreError>) {
        let step = Step(function: function, began: began, ended: DefaultTracerClock.now, outcome: outcome)
        kept.withLock { $0.append(step) }
    }
}
