public import Logging
public import Persistence
import Synchronization

/// Decides recorded requests for codes and links. It alone looks whether an address has an account, while no caller
/// waits. Realms take turns (decision 27).
public struct SignInRequestWorker: Sendable {
    private let requests: SignInRequestStore
    private let factors: [String: any SentFactor]
    private let wake: WakeSignal
    private let wakeDelivery: @Sendable () -> Void
    private let logger: Logger
    private let turn = Turn()

    /// Requests decided in one transaction.
    private static let batch: Int32 = 32
    /// The longest a request recorded by another node waits.
    private static let pollInterval = Duration.seconds(1)

    /// - Parameters:
    ///   - factors: what can be asked for; each kind once.
    ///   - wakeDelivery: called when mails were queued.
    public init(
        requests: SignInRequestStore, factors: [any SentFactor], wake: WakeSignal,
        wakeDelivery: @escaping @Sendable () -> Void, logger: Logger
    ) {
        self.requests = requests
        self.factors = Dictionary(uniqueKeysWithValues: factors.map { ($0.kind, $0) })
        self.wake = wake
        self.wakeDelivery = wakeDelivery
        self.logger = logger
    }

    /// Works until cancelled: at once when woken, and every second for what other nodes left.
    public func run() async {
        await wake.forEach(atLeastEvery: Self.pollInterval) {
            do {
                while try await decideBatch() == Int(Self.batch) {}
            } catch StoreError.cancelled {
                // The server stops; what is pending waits for the next one.
            } catch {
                logger.warning(
                    "requests for codes wait: the database is not available", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Decides one batch in one transaction: takes requests, then decides each and stores what is to be sent.
    /// - Returns: how many requests it held.
    func decideBatch() async throws(StoreError) -> Int {
        let last = turn.last.withLock { $0 }
        let factors = factors
        let (decided, mails, next) = try await requests.transaction { (transaction) throws(StoreError) in
            let pending = try SignInRequestStore.takeUndecided(limit: Self.batch, after: last, in: transaction)
            var mails = 0
            for request in pending {
                guard let factor = factors[request.kind] else { throw .malformedResult }
                if try factor.decide(request, in: transaction) { mails += 1 }
            }
            return (pending.count, mails, pending.last?.realm ?? last)
        }
        turn.last.withLock { $0 = next }
        if mails > 0 { wakeDelivery() }
        return decided
    }

    /// The realm whose requests were decided last; the next batch begins with the one that follows. Begins anywhere, so
    /// that nodes do not walk in step.
    private final class Turn: Sendable {
        let last = Mutex(UUIDValue.random())
    }
}
