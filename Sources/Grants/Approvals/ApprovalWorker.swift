public import Logging
public import Persistence
import Synchronization

/// Finds out whom requests for approval mean. It alone looks whether there is an account, while no caller waits. Realms
/// take turns (decision 27).
public struct ApprovalWorker: Sendable {
    private let store: ApprovalStore
    private let wake: WakeSignal
    private let age: Duration
    private let wakeDelivery: @Sendable () -> Void
    private let logger: Logger
    private let turn = Turn()

    private static let batch: Int32 = 32
    /// The longest a request recorded by another node waits.
    private static let pollInterval = Duration.seconds(1)

    /// - Parameters:
    ///   - age: how old a request is at least, so that its answer has left.
    ///   - wakeDelivery: called when pushes may have been queued.
    public init(
        store: ApprovalStore, wake: WakeSignal, age: Duration, wakeDelivery: @escaping @Sendable () -> Void,
        logger: Logger
    ) {
        self.store = store
        self.wake = wake
        self.age = age
        self.wakeDelivery = wakeDelivery
        self.logger = logger
    }

    /// Works until cancelled: at once when woken, and every second for what other nodes left.
    public func run() async {
        await wake.forEach(atLeastEvery: Self.pollInterval) {
            do {
                while try await resolveBatch() > 0 { wakeDelivery() }
            } catch StoreError.cancelled {
                // The server stops; what is not resolved waits for the next one.
            } catch {
                logger.warning(
                    "requests for approval wait: the database is not available", metadata: ["error": "\(error)"])
            }
        }
    }

    private func resolveBatch() async throws(StoreError) -> Int {
        let last = turn.last.withLock { $0 }
        let (resolved, realm) = try await store.resolve(limit: Self.batch, after: last, age: age)
        turn.last.withLock { $0 = realm }
        return resolved
    }

    /// The realm whose requests were resolved last. Begins anywhere, so that nodes do not walk in step.
    private final class Turn: Sendable {
        let last = Mutex(UUIDValue.random())
    }
}
