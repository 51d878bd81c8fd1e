public import Logging
public import Persistence
import Synchronization

/// Decides recorded requests for codes and links. It alone looks whether an address has an account, while no caller
/// waits. Realms take turns (decision 27).
public struct SignInRequestWorker: Sendable {
    private let requests: SignInRequestStore
    private let factors: [String: any SentFactor]
    private let wake: WakeSignal
    private let age: Duration
    private let wakeDelivery: @Sendable () -> Void
    private let logger: Logger
    private let turn = Turn()

    /// Requests decided in one transaction.
    private static let batch: Int32 = 32
    /// The longest a request recorded by another node waits.
    private static let pollInterval = Duration.seconds(1)

    /// - Parameters:
    ///   - factors: what can be asked for; each kind once.
    ///   - age: how old a request is at least, so that its answer has left.
    ///   - wakeDelivery: called when mails were queued.
    public init(
        requests: SignInRequestStore, factors: [any SentFactor], wake: WakeSignal, age: Duration,
        wakeDelivery: @escaping @Sendable () -> Void, logger: Logger
    ) {
        self.requests = requests
        self.factors = Dictionary(uniqueKeysWithValues: factors.map { ($0.kind, $0) })
        self.wake = wake
        self.age = age
        self.wakeDelivery = wakeDelivery
        self.logger = logger
    }

    /// Works until cancelled: at once when woken, and every second for what other nodes left.
    public func run() async {
        await wake.forEach(atLeastEvery: Self.pollInterval) {
            do {
                // A batch in which every request is busy is tried again at the next wake-up.
                var batch: (taken: Int, decided: Int)
                repeat { batch = try await decide(Self.batch) } while batch.taken == Self.batch && batch.decided > 0
            } catch StoreError.cancelled {
                // The server stops; what is pending waits for the next one.
            } catch {
                logger.warning(
                    "requests for codes wait: they are decided one by one", metadata: ["error": "\(error)"])
                await decideOneByOne()
            }
        }
    }

    /// Decides the requests of a failed batch in transactions of their own, so that one request that fails (for example
    /// at a locked row) does not delay requests of other realms.
    private func decideOneByOne() async {
        for _ in 0..<Self.batch {
            do {
                guard try await decide(1).taken > 0 else { return }
            } catch .timedOut, .conflict, .violation, .rejected {
                // The turn has gone to the next realm.
            } catch {
                return
            }
        }
    }

    /// Takes a batch of requests, decides each and stores what is to be sent, in one transaction.
    private func decide(_ limit: Int32) async throws(StoreError) -> (taken: Int, decided: Int) {
        let last = turn.last.withLock { $0 }
        let (factors, turn, age) = (factors, turn, age)
        let (taken, decided, sent) = try await requests.transaction { (transaction) throws(StoreError) in
            let pending = try SignInRequestStore.takeUndecided(limit: limit, after: last, age: age, in: transaction)
            var (decided, sent) = (0, 0)
            for request in pending {
                // Before the decision: after a failure the next batch begins with another realm.
                turn.last.withLock { $0 = request.realm }
                guard let factor = factors[request.kind] else { throw .malformedResult }
                switch try factor.decide(request, in: transaction) {
                case .sent: (decided, sent) = (decided + 1, sent + 1)
                case .nothing: decided += 1
                case .busy: break
                }
            }
            return (pending.count, decided, sent)
        }
        if sent > 0 { wakeDelivery() }
        return (taken, decided)
    }

    /// The realm whose requests were decided last; the next batch begins with the one that follows. Begins anywhere, so
    /// that nodes do not walk in step.
    private final class Turn: Sendable {
        let last = Mutex(UUIDValue.random())
    }
}
