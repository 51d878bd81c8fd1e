import Synchronization

/// The place where the holder of a connection's lease waits for the server: at most one waiter, resumed exactly once.
///
/// Locking: the thread that resumes the waiter removes it under the lock and resumes it after the lock was released. A
/// cancellation is first marked and then calls ``interrupt()``. A caller first stores its waiter and then checks the
/// mark. So either the cancellation finds the waiter or the caller finds the mark.
final class Watch: Sendable {
    /// Why the waiter was woken.
    enum Signal: Sendable {
        /// There is something to read, or the end of the stream; or nothing, on an event left over from before: look
        /// again.
        case readable
        /// Cancelled, overdue, or impossible to wait for.
        case interrupted
    }

    private struct Waiter {
        let continuation: CheckedContinuation<Signal, Never>
        let deadline: ContinuousClock.Instant
    }

    private let id: UInt64
    private let source: ReadinessSource
    private let waiter = Mutex<Waiter?>(nil)

    init(id: UInt64, source: ReadinessSource) {
        self.id = id
        self.source = source
    }

    deinit { source.forget(id) }

    /// Suspends until `socket` is readable, ``interrupt()``, or the deadline.
    func wait(
        for socket: Int32, until deadline: ContinuousClock.Instant, isCancelled: () -> Bool
    ) async -> Signal {
        await withCheckedContinuation { continuation in
            waiter.withLock { $0 = Waiter(continuation: continuation, deadline: deadline) }
            if !source.arm(socket, id: id) || isCancelled() { interrupt() }
        }
    }

    /// Resumes the waiter.
    func interrupt() {
        wake(.interrupted)
    }

    /// Resumes the waiter because the socket is readable.
    func isReadable() {
        wake(.readable)
    }

    /// Resumes the waiter if its deadline has passed.
    func expire(at now: ContinuousClock.Instant) {
        waiter.withLock { waiter in
            guard let overdue = waiter, overdue.deadline <= now else { return nil as Waiter? }
            waiter = nil
            return overdue
        }?.continuation.resume(returning: .interrupted)
    }

    private func wake(_ signal: Signal) {
        waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }?.continuation.resume(returning: signal)
    }
}
