/// Decides which caller gets which connection, and when to make a new one. A value without threads, clock or database:
/// events come in, actions go out, and the caller that held the lock performs them after releasing it.
///
/// The pool keeps `capacity` connections, lends the one returned last (its caches are warm), and queues at most
/// `maximumWaiters` callers for at most `checkoutTimeout`. After a failed attempt it tries again after a growing
/// back-off, but at least every `demandInterval` while callers wait.
///
/// Every connection is lent on a share (``Loans``). A realm whose share is used up waits, though connections may be
/// free, and the waiter of the realm that holds fewest comes first. The rule that bounds a realm's connections bounds
/// its waiters, too.
struct PoolStateMachine<Connection, Waiter> {
    struct Limits {
        var capacity: Int
        var maximumWaiters: Int
        var checkoutTimeout: Duration
        /// Attempts are at most this far apart while callers wait.
        var demandInterval: Duration = .milliseconds(200)
        /// The first pause after a failed attempt; doubled up to ``maximumBackOff``.
        var minimumBackOff: Duration = .milliseconds(25)
        /// Attempts are at most this far apart when no caller waits.
        var maximumBackOff: Duration = .seconds(2)
    }

    typealias Instant = ContinuousClock.Instant
    typealias Reason = StoreError.Reason

    enum Checkout {
        case lend(Connection)
        case wait
        case refuse(Reason)
    }

    enum Action {
        /// Give the connection to a caller who waited.
        case resume(Waiter, Connection)
        /// Tell a caller who waited that there is none.
        case fail(Waiter, Reason)
        /// Make `count` connections; each attempt ends in ``connected(_:now:)`` or ``connectFailed(_:now:)``.
        case connect(Int)
        /// Call ``timePassed(now:)`` then.
        case wake(at: Instant)
        /// Let go of a connection.
        case close(Connection)
        /// Nothing is lent any more: the pool is closed.
        case finished
    }

    enum Phase { case idle, running, draining, closed }

    let limits: Limits
    private(set) var phase = Phase.idle
    private(set) var available: [Connection] = []
    private var loans: Loans
    private(set) var connecting = 0
    private(set) var lastFailure: Reason?
    private var waiters = WaiterQueue<Waiter>()
    private var consecutiveFailures = 0
    private var lastAttempt: Instant?
    private var nextAttempt: Instant?
    private var nextWake: Instant?

    init(_ limits: Limits) {
        self.limits = limits
        loans = Loans(capacity: limits.capacity)
    }

    /// Connections on loan.
    var lent: Int { loans.total }
    /// Connections on loan to one share.
    func lent(to share: PoolShare) -> Int { loans.held[share] ?? 0 }

    /// Callers who wait.
    var waiting: Int { waiters.count }

    // MARK: Life

    /// Starts: one attempt now, the rest once it succeeded.
    mutating func start(now: Instant) -> [Action] {
        guard phase == .idle else { return [] }
        phase = .running
        return settle(now: now)
    }

    /// Refuses newcomers and closes what is idle; what is lent may finish.
    mutating func drain() -> [Action] {
        guard phase == .running || phase == .idle else { return [] }
        phase = .draining
        var actions = waiters.removeAll().map { Action.fail($0, .notRunning) } + available.map(Action.close)
        available = []
        finishIfEmpty(&actions)
        return actions
    }

    // MARK: Callers

    /// A caller wants a connection now; no waiter is made yet.
    mutating func checkout(for share: PoolShare) -> Checkout {
        guard phase == .running else { return .refuse(.notRunning) }
        // Waiters of this share come first. Waiters of other shares wait because their share is used up.
        if waiters.count(of: share) == 0, loans.mayGrow(share), let connection = available.popLast() {
            loans.add(1, to: share)
            return .lend(connection)
        }
        return mayWait(share) ? .wait : .refuse(.tooManyWaiters)
    }

    /// Queues a caller that was told to wait, under a number of its own; or serves it at once if a connection became
    /// free in between.
    mutating func enqueue(_ waiter: Waiter, for share: PoolShare, number: UInt64, now: Instant) -> [Action] {
        switch checkout(for: share) {
        case .lend(let connection): return [.resume(waiter, connection)]
        case .refuse(let reason): return [.fail(waiter, reason)]
        case .wait: break
        }
        waiters.append(waiter, of: share, number: number, deadline: now + limits.checkoutTimeout)
        return settle(now: now)
    }

    /// A waiting caller gave up. - Returns: the waiter, unless it has been served already.
    mutating func cancel(number: UInt64) -> Waiter? {
        waiters.remove(number: number)
    }

    /// A lent connection comes back.
    mutating func checkin(_ connection: Connection, of share: PoolShare, isReusable: Bool, now: Instant) -> [Action] {
        loans.add(-1, to: share)
        if isReusable { return offer(connection) }
        // Less is lent, so a realm that waited for its share may now have a free one.
        var actions: [Action] = [.close(connection)] + serve() + settle(now: now)
        finishIfEmpty(&actions)
        return actions
    }

    // MARK: Connections

    /// An attempt succeeded.
    mutating func connected(_ connection: Connection, now: Instant) -> [Action] {
        connecting -= 1
        consecutiveFailures = 0
        lastFailure = nil
        nextAttempt = nil
        return offer(connection) + settle(now: now)
    }

    /// An attempt failed.
    mutating func connectFailed(_ reason: Reason, now: Instant) -> [Action] {
        connecting -= 1
        consecutiveFailures += 1
        lastFailure = reason
        var actions: [Action] = []
        finishIfEmpty(&actions)
        return actions + settle(now: now)
    }

    /// The time of ``Action/wake(at:)`` has passed.
    mutating func timePassed(now: Instant) -> [Action] {
        if let due = nextWake, due <= now { nextWake = nil }
        guard phase == .running else { return [] }
        let reason = available.isEmpty && lent == 0 ? lastFailure ?? .connectFailed : .poolExhausted
        return waiters.removeExpired(now: now).map { Action.fail($0, reason) } + settle(now: now)
    }

    // MARK: Rules

    private mutating func offer(_ connection: Connection) -> [Action] {
        guard phase == .running else {
            var actions: [Action] = [.close(connection)]
            finishIfEmpty(&actions)
            return actions
        }
        available.append(connection)
        return serve()
    }

    /// Lends free connections to waiters, within their shares.
    private mutating func serve() -> [Action] {
        var actions: [Action] = []
        while !available.isEmpty {
            let loans = self.loans
            guard let next = waiters.popFirst(by: loans.rank), let connection = available.popLast() else {
                break
            }
            self.loans.add(1, to: next.share)
            actions.append(.resume(next.waiter, connection))
        }
        return actions
    }

    /// Whether a share may have one waiter more.
    private func mayWait(_ share: PoolShare) -> Bool {
        guard share != .server else { return waiters.count(of: share) < limits.maximumWaiters }
        let free = limits.maximumWaiters - (waiters.count - waiters.count(of: .server))
        let waiting = waiters.count(of: share)
        return free > 0 && (waiting == 0 || waiting < Loans.greed * (free - 1))
    }

    private mutating func settle(now: Instant) -> [Action] {
        attempts(now: now) + wake(now: now)
    }

    /// New attempts, as many as are missing; one at a time while they fail.
    private mutating func attempts(now: Instant) -> [Action] {
        guard phase == .running else { return [] }
        let missing = limits.capacity - available.count - lent - connecting
        guard missing > 0 else { return [] }
        let hasEverConnected = lastFailure == nil && (available.count + lent > 0)
        if hasEverConnected {
            connecting += missing
            lastAttempt = now
            return [.connect(missing)]
        }
        // One attempt at a time; a second one only when the first does not return.
        let due = lastAttempt.map { $0 + pause } ?? now
        nextAttempt = due
        guard due <= now, connecting == 0 || !waiters.isEmpty else { return [] }
        connecting += 1
        lastAttempt = now
        nextAttempt = now + pause
        return [.connect(1)]
    }

    /// The time between two attempts.
    private var pause: Duration {
        guard consecutiveFailures > 0 else { return limits.demandInterval }
        let backOff = limits.minimumBackOff * (1 << min(consecutiveFailures - 1, 16))
        return min(backOff, waiters.isEmpty ? limits.maximumBackOff : limits.demandInterval)
    }

    /// One timer for the earliest deadline; a timer already set for that time or earlier is enough.
    private mutating func wake(now: Instant) -> [Action] {
        guard phase == .running else { return [] }
        let mayAttempt = limits.capacity > available.count + lent + connecting && (connecting == 0 || !waiters.isEmpty)
        guard let due = [waiters.firstDeadline, mayAttempt ? nextAttempt : nil].compactMap({ $0 }).min() else {
            return []
        }
        if let nextWake, nextWake <= due { return [] }
        nextWake = due
        return [.wake(at: due)]
    }

    private mutating func finishIfEmpty(_ actions: inout [Action]) {
        guard phase == .draining, lent == 0 else { return }
        phase = .closed
        actions.append(.finished)
    }
}
