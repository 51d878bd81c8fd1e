import Synchronization

/// Runs one body at a time per key in this process.
///
/// A body that will lock the row or the address named by its key runs here first, so callers of one hot key wait in
/// memory and not on a database connection. Callers of a key are served in the order they came. A free key costs one
/// lock and no task.
///
/// Locking: `state` guards the keys that run and their waiters. A continuation is taken out under the lock and resumed
/// after the lock was released, so it is resumed exactly once. The turn is handed on in the same step in which it ends.
public final class Turns: Sendable {
    /// How many callers may wait, and how long.
    public struct Limits: Sendable {
        /// Callers that may wait for one key.
        public var waitersPerKey: Int
        /// Callers that may wait for all keys together. A caller whose key is free never waits and is not counted.
        public var waiters: Int
        /// How long a caller waits for its turn, and in its turn for a lock that another node holds.
        public var maximumWait: Duration

        /// Takes the values as they are.
        public init(waitersPerKey: Int = 64, waiters: Int = 4096, maximumWait: Duration = .seconds(2)) {
            self.waitersPerKey = waitersPerKey
            self.waiters = waiters
            self.maximumWait = maximumWait
        }
    }

    private typealias Continuation = CheckedContinuation<TokenError?, Never>

    private struct Waiter {
        let continuation: Continuation
        let key: String
        let deadline: ContinuousClock.Instant
    }

    private struct State {
        /// The keys whose body runs, each with the numbers of its waiters, the first in line first.
        var lines: [String: [UInt64]] = [:]
        var waiters: [UInt64: Waiter] = [:]
        var lastNumber: UInt64 = 0
        /// Whether a task watches the deadlines. It runs while there are waiters.
        var isWatched = false
    }

    let limits: Limits
    private let state = Mutex(State())
    /// Deadlines are looked at no more often than this.
    private static let precision = Duration.milliseconds(10)

    /// Turns within `limits`.
    public init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Callers that wait for `key`.
    func waiting(for key: String) -> Int { state.withLock { $0.lines[key]?.count ?? 0 } }
    /// Whether no body runs and nothing is remembered.
    var isIdle: Bool { state.withLock { $0.lines.isEmpty && $0.waiters.isEmpty } }

    /// Runs `body` when no other body of `key` runs.
    ///
    /// `key` must name the realm too, for two realms may know the same address.
    /// - Throws: what `body` threw; `temporarily_unavailable` when too many callers wait, when the turn did not come in
    ///   time, and when the task was cancelled while it waited. `body` did not run in these three cases.
    public func run<T>(_ key: String, _ body: () async throws -> T) async throws -> T {
        if !takesFree(key) { try await wait(for: key) }
        defer { handOn(key) }
        return try await body()
    }

    private func takesFree(_ key: String) -> Bool {
        state.withLock { state in
            guard state.lines[key] == nil else { return false }
            state.lines[key] = []
            return true
        }
    }

    private func wait(for key: String) async throws(TokenError) {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let refusal = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enqueue(continuation, key, number)
                // A cancellation that came before the waiter was in line.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
        if let refusal { throw refusal }
    }

    private func enqueue(_ continuation: Continuation, _ key: String, _ number: UInt64) {
        enum Step {
            case wait(watch: Bool)
            case go
            case refuse(String)
        }
        let step: Step = state.withLock { state in
            // The key may have become free since.
            guard let line = state.lines[key] else {
                state.lines[key] = []
                return .go
            }
            guard line.count < limits.waitersPerKey else { return .refuse("too many wait for their turn") }
            guard state.waiters.count < limits.waiters else { return .refuse("too many wait for turns") }
            state.lines[key]?.append(number)
            state.waiters[number] = Waiter(
                continuation: continuation, key: key, deadline: ContinuousClock.now + limits.maximumWait)
            defer { state.isWatched = true }
            return .wait(watch: !state.isWatched)
        }
        switch step {
        case .go: continuation.resume(returning: nil)
        case .refuse(let reason): continuation.resume(returning: .unavailable(reason))
        case .wait(watch: true): watchDeadlines()
        case .wait(watch: false): break
        }
    }

    /// Gives the turn to the next in line, or frees the key.
    private func handOn(_ key: String) {
        let next = state.withLock { state -> Waiter? in
            guard let number = state.lines[key]?.first else {
                state.lines[key] = nil
                return nil
            }
            state.lines[key]?.removeFirst()
            return state.waiters.removeValue(forKey: number)
        }
        next?.continuation.resume(returning: nil)
    }

    private func cancel(_ number: UInt64) {
        let waiter = state.withLock { Self.remove(number, from: &$0) }
        waiter?.continuation.resume(returning: .unavailable("cancelled while it waited for its turn"))
    }

    private static func remove(_ number: UInt64, from state: inout State) -> Waiter? {
        guard let waiter = state.waiters.removeValue(forKey: number) else { return nil }
        state.lines[waiter.key]?.removeAll { $0 == number }
        return waiter
    }

    /// Refuses the callers whose time is up, until no caller waits. Holds this object no longer than that.
    private func watchDeadlines() {
        Task {
            while let pause = expire() {
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// - Returns: the time until the next deadline; `nil` when no caller waits.
    private func expire() -> Duration? {
        let now = ContinuousClock.now
        let (expired, pause) = state.withLock { state -> ([Waiter], Duration?) in
            let due = state.waiters.filter { $0.value.deadline <= now }.keys.sorted()
            let expired = due.compactMap { Self.remove($0, from: &state) }
            guard let next = state.waiters.values.map(\.deadline).min() else {
                state.isWatched = false
                return (expired, nil)
            }
            return (expired, max(now.duration(to: next), Self.precision))
        }
        for waiter in expired { waiter.continuation.resume(returning: .unavailable("its turn did not come in time")) }
        return pause
    }
}
