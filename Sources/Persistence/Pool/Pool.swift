import Logging
import Synchronization

/// The bounded set of connections behind a ``Database``: a ``PoolStateMachine`` under one lock, and the hands that
/// perform its actions after the lock is released.
final class Pool: Sendable {
    /// A connection on loan. The number identifies the loan, so that it can be cancelled and no other.
    struct Lease: Sendable {
        let connection: Connection
        let number: UInt64
        let share: PoolShare
    }

    typealias Machine = PoolStateMachine<Connection, CheckedContinuation<Result<Connection, StoreError>, Never>>

    /// What needs a task of its own.
    private enum Order: Sendable {
        case connect(Int)
        case wake(at: ContinuousClock.Instant)
        case finished
    }

    private struct State {
        var machine: Machine
        var lastNumber: UInt64 = 0
        var loggedFailure: String?

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    private let configuration: DatabaseConfiguration
    private let logger: Logger
    /// Waits on behalf of all connections; `nil` when the system has no thread or descriptor to give.
    private let readiness: ReadinessSource?
    private let state: Mutex<State>
    private let orders: AsyncStream<Order>
    private let order: AsyncStream<Order>.Continuation

    init(_ configuration: DatabaseConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        readiness = ReadinessSource(precision: configuration.statementTimeout / 20)
        state = Mutex(
            State(
                machine: Machine(
                    .init(
                        capacity: max(1, configuration.connections), maximumWaiters: configuration.maximumWaiters,
                        checkoutTimeout: configuration.checkoutTimeout))))
        (orders, order) = AsyncStream.makeStream()
    }

    /// Borrows a connection: at once when one is free and within the share, else after at most the checkout timeout.
    func checkout(for share: PoolShare) async throws(StoreError) -> Lease {
        let (verdict, number, isEarly) = state.withLock { state in
            (state.machine.checkout(for: share), state.nextNumber(), state.machine.phase == .idle)
        }
        if isEarly {
            try await waitForStart()
            return try await checkout(for: share)
        }
        switch verdict {
        case .lend(let connection): return Lease(connection: connection, number: number, share: share)
        case .refuse(let reason): throw .unavailable(reason)
        case .wait: return Lease(connection: try await wait(number, share).get(), number: number, share: share)
        }
    }

    /// Services start side by side: a caller may be a little earlier than ``run()``.
    private func waitForStart() async throws(StoreError) {
        let deadline = ContinuousClock.now + configuration.checkoutTimeout
        while state.withLock({ $0.machine.phase }) == .idle {
            guard ContinuousClock.now < deadline else { throw .unavailable(.notRunning) }
            do { try await Task.sleep(for: .milliseconds(5)) } catch { throw .cancelled }
        }
    }

    private func wait(_ number: UInt64, _ share: PoolShare) async -> Result<Connection, StoreError> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                perform(state.withLock { $0.machine.enqueue(continuation, for: share, number: number, now: .now) })
                // A cancellation that came before there was anything to cancel.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
    }

    private func cancel(_ number: UInt64) {
        state.withLock { $0.machine.cancel(number: number) }?.resume(returning: .failure(.cancelled))
    }

    /// Gives a connection back; one that cannot be used again is replaced.
    func checkin(_ lease: Lease, isReusable: Bool) {
        perform(
            state.withLock {
                $0.machine.checkin(lease.connection, of: lease.share, isReusable: isReusable, now: .now)
            })
    }

    /// Refuses new loans and closes what is idle; ``run()`` returns when the last loan has come back.
    func drain() {
        perform(state.withLock { $0.machine.drain() })
    }

    /// Connections now free, on loan, being made; callers waiting.
    var counts: (free: Int, lent: Int, connecting: Int, waiting: Int) {
        state.withLock { ($0.machine.available.count, $0.machine.lent, $0.machine.connecting, $0.machine.waiting) }
    }

    /// Makes and replaces connections until ``drain()`` is done or the task is cancelled.
    func run() async {
        perform(state.withLock { $0.machine.start(now: .now) })
        await withDiscardingTaskGroup { group in
            for await order in orders {
                switch order {
                case .connect(let count):
                    for _ in 0..<count { group.addTask { await self.connect() } }
                case .wake(let instant):
                    group.addTask {
                        try? await Task.sleep(until: instant, clock: .continuous)
                        self.perform(self.state.withLock { $0.machine.timePassed(now: .now) })
                    }
                case .finished:
                    group.cancelAll()
                    return
                }
            }
            group.cancelAll()
        }
    }

    private func connect() async {
        guard let connection = Connection(configuration, readiness: readiness) else {
            return connectFailed(ConnectFailure(reason: .serverResources, message: "no thread for another connection"))
        }
        do {
            try await connection.connect()
            perform(state.withLock { $0.machine.connected(connection, now: .now) })
            let failure = state.withLock { exchange(&$0.loggedFailure, with: nil) }
            if failure != nil { logger.info("database connected again") }
        } catch {
            connectFailed(error)
        }
    }

    private func connectFailed(_ failure: ConnectFailure) {
        let isNews = state.withLock { exchange(&$0.loggedFailure, with: failure.message) != failure.message }
        if isNews {
            logger.warning(
                "no database connection",
                metadata: ["reason": "\(failure.reason.rawValue)", "detail": "\(failure.message)"])
        }
        perform(state.withLock { $0.machine.connectFailed(failure.reason, now: .now) })
    }

    private func perform(_ actions: [Machine.Action]) {
        for action in actions {
            switch action {
            case .resume(let waiter, let connection): waiter.resume(returning: .success(connection))
            case .fail(let waiter, let reason): waiter.resume(returning: .failure(.unavailable(reason)))
            case .connect(let count): order.yield(.connect(count))
            case .wake(let instant): order.yield(.wake(at: instant))
            case .finished: order.yield(.finished)
            case .close: break  // letting go of it is what closes it, on its own thread
            }
        }
    }
}
