import Synchronization

/// A clock that stands still until the test moves it, and knows how often it was looked at.
final class ManualClock: Sendable {
    private let state = Mutex((now: ContinuousClock.now, reads: 0))

    /// What time it is.
    func read() -> ContinuousClock.Instant {
        state.withLock { state in
            state.reads += 1
            return state.now
        }
    }

    /// Lets time pass.
    func advance(by duration: Duration) {
        state.withLock { $0.now += duration }
    }

    /// Waits until whoever works by this clock has looked at it so many times more.
    func waitForReads(_ count: Int) async throws {
        let goal = state.withLock { $0.reads + count }
        while state.withLock({ $0.reads < goal }) { try await Task.sleep(for: .milliseconds(2)) }
    }
}
