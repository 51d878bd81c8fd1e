import Synchronization

/// Work that a request causes and that begins when its answer has left, so that the work cannot delay the answer and
/// show by its time what was found.
final class Departure: Sendable {
    /// Of the request under way in this task.
    @TaskLocal static var current: Departure?

    private enum State {
        case under(way: [@Sendable () -> Void])
        case left
    }

    private let state = Mutex(State.under(way: []))

    /// Runs `work` when the answer of the request under way has been handed to the kernel, or its connection has ended;
    /// at once where no request is under way.
    static func then(_ work: @escaping @Sendable () -> Void) {
        if current?.keep(work) != true { work() }
    }

    /// - Returns: whether the answer is still to leave.
    private func keep(_ work: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            guard case .under(let kept) = state else { return false }
            state = .under(way: kept + [work])
            return true
        }
    }

    /// The answer has left, or never will.
    func left() {
        let kept = state.withLock { state -> [@Sendable () -> Void] in
            guard case .under(let kept) = state else { return [] }
            state = .left
            return kept
        }
        for work in kept { work() }
    }
}
