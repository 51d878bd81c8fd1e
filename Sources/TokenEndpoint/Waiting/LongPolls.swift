import Persistence
import Synchronization

/// Where requests wait for a change without a database connection and without a query (docs/decisions/0041).
///
/// A place costs an entry in each of three tables. One notification on the listening connection wakes the requests of
/// its topic; one timer ends those whose time is up. A request takes a ``Mark`` before it polls, so that a change
/// between its poll and its wait is not lost. Polls take turns (``PollQueue``): ten thousand devices that come at once
/// must not take the connections of those who sign in.
final class LongPolls: Sendable {
    /// How many wake-ups there had been.
    struct Mark: Sendable, Comparable {
        fileprivate let number: UInt64
        static func < (one: Mark, other: Mark) -> Bool { one.number < other.number }
    }

    /// Why a wait ended.
    enum Outcome: Sendable {
        /// The topic has changed.
        case woken
        /// The topic may have changed: the listening connection was away, or what happened was forgotten.
        case unsure
        /// The time is up, the client has gone, or the server stops.
        case over
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Outcome, Never>
        /// `nil`: it waits for its turn to poll.
        let topic: WaitTopic?
    }

    private struct State {
        var occupied = 0
        var waiters: [UInt64: Waiter] = [:]
        var topics: [WaitTopic: Set<UInt64>] = [:]
        /// By the tick at which their time is up. An entry whose wait has ended stays until then.
        var due: [Int64: [UInt64]] = [:]
        var lastNumber: UInt64 = 0
        var wakes: UInt64 = 0
        /// The number of the last wake-up of each topic since ``forgotten``.
        var recent: [WaitTopic: UInt64] = [:]
        /// Marks from before this wake-up have to poll again: the server does not know what they missed.
        var forgotten: UInt64 = 0
        var queue = PollQueue()
        var lastTick: Int64 = 0
        var isTicking = false
    }

    static let tick = Duration.milliseconds(250)
    private static let rememberedTopics = 4096

    /// How many requests may wait in this process.
    let places: Int
    private let began = ContinuousClock.now
    private let state = Mutex(State())

    init(places: Int) {
        self.places = places
    }

    /// Requests that hold a place.
    var occupied: Int { state.withLock { $0.occupied } }

    /// Takes a place. - Returns: `false` when all are taken.
    func enter() -> Bool {
        state.withLock { state in
            guard state.occupied < places else { return false }
            state.occupied += 1
            return true
        }
    }

    /// Gives a place back.
    func leave() {
        state.withLock { state in
            state.occupied -= 1
            guard state.occupied == 0 else { return }
            state.recent.removeAll()
            state.forgotten = state.wakes
        }
    }

    /// To be taken before a poll of the database.
    var mark: Mark { Mark(number: state.withLock { $0.wakes }) }

    /// Waits for a change of a topic, by a request that has a place.
    /// - Parameters:
    ///   - mark: from before the last poll: a change since then ends the wait at once.
    ///   - deadline: the wait ends up to ``tick`` later.
    ///   - end: of the request's connection.
    func wait(
        for topic: WaitTopic, since mark: Mark, until deadline: ContinuousClock.Instant, _ end: ConnectionEnd?
    ) async -> Outcome {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        defer { end?.clear() }
        return await withCheckedContinuation { continuation in
            let outcome = state.withLock { state -> Outcome? in
                if state.recent[topic] ?? 0 > mark.number { return .woken }
                if mark.number < state.forgotten { return .unsure }
                guard ContinuousClock.now < deadline else { return .over }
                state.topics[topic, default: []].insert(number)
                add(Waiter(continuation: continuation, topic: topic), number, until: deadline, &state)
                return nil
            }
            if let outcome { return continuation.resume(returning: outcome) }
            end?.onSignal { [weak self] in self?.end([number], .over) }
        }
    }

    /// Runs a poll of the database in its turn.
    /// - Parameters:
    ///   - isUrgent: something has changed, so it goes before those that only want to begin to wait.
    ///   - deadline: until then the turn is waited for.
    ///   - end: of the request's connection.
    /// - Throws: `unavailable` when the turn did not come; what `poll` threw.
    func inTurn<Found: Sendable>(
        isUrgent: Bool, until deadline: ContinuousClock.Instant, _ end: ConnectionEnd?,
        _ poll: @Sendable () async throws -> Found
    ) async throws -> Found {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let outcome = await withCheckedContinuation { continuation in
            let outcome = state.withLock { state -> Outcome? in
                if state.queue.takesTurn() { return .woken }
                state.queue.append(number, isUrgent: isUrgent)
                add(Waiter(continuation: continuation, topic: nil), number, until: deadline, &state)
                return nil
            }
            if let outcome { return continuation.resume(returning: outcome) }
            end?.onSignal { [weak self] in self?.end([number], .over) }
        }
        end?.clear()
        guard outcome == .woken else { throw StoreError.unavailable(.poolExhausted) }
        defer { handOn() }
        // A task keeps until its end the memory that its deepest call took: the poll has a task of its own.
        async let found = poll()
        return try await found
    }

    /// The turn goes to the next in line.
    private func handOn() {
        let next = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            while let number = state.queue.next() {
                if let continuation = Self.remove(number, &state) { return continuation }
            }
            return nil
        }
        next?.resume(returning: .woken)
    }

    /// Wakes who waits for a topic.
    func wake(_ topic: WaitTopic) {
        let numbers = state.withLock { state -> Set<UInt64> in
            state.wakes += 1
            if state.occupied > 0 {
                if state.recent.count >= Self.rememberedTopics {
                    state.recent.removeAll()
                    state.forgotten = state.wakes
                }
                state.recent[topic] = state.wakes
            } else {
                state.forgotten = state.wakes
            }
            return state.topics[topic] ?? []
        }
        end(numbers, .woken)
    }

    /// The listening connection is there again: every waiting request polls once.
    func wakeAll() {
        let numbers = state.withLock { state in
            state.wakes += 1
            state.recent.removeAll()
            state.forgotten = state.wakes
            return Array(state.topics.values.joined())
        }
        end(numbers, .unsure)
    }

    private func add(
        _ waiter: Waiter, _ number: UInt64, until deadline: ContinuousClock.Instant, _ state: inout State
    ) {
        state.waiters[number] = waiter
        state.due[tickNumber(deadline) + 1, default: []].append(number)
        startTicking(&state)
    }

    private func end(_ numbers: some Sequence<UInt64>, _ outcome: Outcome) {
        let ended = state.withLock { state in numbers.compactMap { Self.remove($0, &state) } }
        for continuation in ended { continuation.resume(returning: outcome) }
    }

    private static func remove(_ number: UInt64, _ state: inout State) -> CheckedContinuation<Outcome, Never>? {
        guard let waiter = state.waiters.removeValue(forKey: number) else { return nil }
        if let topic = waiter.topic {
            state.topics[topic]?.remove(number)
            if state.topics[topic]?.isEmpty == true { state.topics[topic] = nil }
        }
        return waiter.continuation
    }

    // MARK: The timer

    private func tickNumber(_ time: ContinuousClock.Instant) -> Int64 {
        Int64(began.duration(to: time) / Self.tick)
    }

    private func startTicking(_ state: inout State) {
        guard !state.isTicking else { return }
        state.isTicking = true
        state.lastTick = tickNumber(.now)
        Task { [weak self] in
            repeat { try? await Task.sleep(for: Self.tick) } while self?.checkTime() ?? false
        }
    }

    /// - Returns: whether anybody waits on.
    private func checkTime() -> Bool {
        let now = tickNumber(.now)
        let (overdue, goesOn) = state.withLock { state in
            let ticks = now > state.lastTick ? Array((state.lastTick + 1)...now) : []
            let overdue = ticks.flatMap { state.due.removeValue(forKey: $0) ?? [] }
            state.lastTick = now
            state.isTicking = !state.due.isEmpty
            return (overdue, state.isTicking)
        }
        end(overdue, .over)
        return goesOn
    }
}
