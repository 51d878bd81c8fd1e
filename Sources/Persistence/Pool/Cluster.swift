import Logging
import ServiceLifecycle

/// The database of one PostgreSQL cluster behind a bounded pool of connections, each with a thread of its own for
/// blocking work.
final class Cluster: Sendable {
    let configuration: DatabaseConfiguration
    private let pool: Pool

    /// A database that is opened by ``run()``.
    init(configuration: DatabaseConfiguration, logger: Logger) {
        self.configuration = configuration
        pool = Pool(configuration, logger: logger)
    }

    /// Opens the connections and keeps them, until graceful shutdown (statements under way may finish) or cancellation.
    func run() async {
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await pool.run()
            } onGracefulShutdown: {
                self.pool.drain()
            }
        } onCancel: {
            pool.drain()
        }
    }

    /// Runs one statement in a transaction of its own: one round trip. The connection counts against the pool share of
    /// the realm named by the first parameter (``Statement/payer``). The statement is sent and decoded on the caller's
    /// thread, which never blocks; everything outside the fast path runs on the connection's thread.
    ///
    /// A lost connection is repaired behind the caller's back where that is harmless: always before anything was sent,
    /// and once more for statements that are ``Statement/Effect/readOnly`` or ``Statement/Effect/idempotent``; when no
    /// connection is available for that, an idempotent one is ``StoreError/inDoubt``. Serialization failures and
    /// deadlocks are retried three times. Cancelling the task stops a read-only statement on the server; one that
    /// writes is allowed to finish.
    /// - Returns: the decoded rows.
    func query<R: Sendable>(
        _ statement: Statement, _ parameters: [Parameter],
        _ decode: @escaping @Sendable (borrowing Row) throws(StoreError) -> R
    ) async throws(StoreError) -> [R] {
        try await attempt(statement.share(parameters), mayChange: statement.effect == .idempotent) { lease in
            await lease.connection.run(statement, parameters, operation: lease.number, decode)
        }
    }

    /// Runs `body` between BEGIN and COMMIT on the connection's thread.
    ///
    /// `body` is synchronous, so nothing interleaves with the transaction, and may run more than once: a connection
    /// lost before COMMIT was sent, a serialization failure and a deadlock start it again. It must have no effect but
    /// its statements. The connection counts as the server's own, not as a realm's.
    /// - Parameter trail: told of its statements.
    /// - Throws: ``StoreError/inDoubt`` when the answer to COMMIT was lost.
    func transaction<R: Sendable>(
        _ trail: TransactionTrail?, _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        try await attempt(.server, mayChange: false) { lease in
            await lease.connection.transact(operation: lease.number, trail, body)
        }
    }

    /// Connections free, on loan and being made, and callers waiting: for metrics and readiness.
    var poolCounts: (free: Int, lent: Int, connecting: Int, waiting: Int) { pool.counts }

    private func attempt<R: Sendable>(
        _ share: PoolShare, mayChange: Bool, _ perform: (Pool.Lease) async -> Outcome<R>
    ) async throws(StoreError) -> R {
        var budget = RetryBudget(connections: configuration.connections)
        // Whether an earlier attempt may have been executed without our knowing.
        var isInDoubt = false
        while true {
            let lease: Pool.Lease
            do {
                lease = try await pool.checkout(for: share)
            } catch {
                throw isInDoubt ? .inDoubt : error
            }
            let outcome = await withTaskCancellationHandler {
                await perform(lease)
            } onCancel: {
                lease.connection.cancel(lease.number)
            }
            pool.checkin(lease, isReusable: outcome.isReusable)
            switch outcome.result {
            case .success(let value): return value
            case .failure(let failure):
                guard let pause = budget.pause(before: failure.remedy) else { throw failure.error }
                if failure.remedy == .onceMore { isInDoubt = mayChange }
                if pause > .zero {
                    do { try await Task.sleep(for: pause) } catch { throw .cancelled }
                }
            }
        }
    }
}

/// How often one call may be repeated.
struct RetryBudget {
    private var deadConnections: Int
    private var repetitions = 1
    private var conflicts = 0

    init(connections: Int) {
        // After a restart of the server every idle connection may turn out to be dead.
        deadConnections = connections + 1
    }

    /// The pause before another attempt; `nil` when there must be none.
    mutating func pause(before remedy: Failure.Remedy) -> Duration? {
        switch remedy {
        case .none, .prepareAgain: return nil
        case .anotherConnection:
            deadConnections -= 1
            return deadConnections >= 0 ? .zero : nil
        case .onceMore:
            // The server may be ending other sessions too: wait a moment, so that the next connection is noticed as
            // dead.
            repetitions -= 1
            return repetitions >= 0 ? .milliseconds(50) : nil
        case .backOff:
            conflicts += 1
            return conflicts <= 3 ? .milliseconds(Int64.random(in: 1...(5 << conflicts))) : nil
        }
    }
}
