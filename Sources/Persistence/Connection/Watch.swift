import Synchronization

/// Where the holder of a connection's lease waits for the server to speak: at most one waiter, woken exactly once.
///
/// Locking: `waiter` is taken out under the lock by whoever wakes it, and woken after the lock was released. A cancellation is
/// marked before ``interrupt()`` takes the lock and looked for after the waiter was put in, so one of the two sees the other.
final class Watch: Sendable {
    /// Why the waiter was woken.
    enum Signal: Sendable {
        /// There is something to read, or the end of the stream; or nothing, on an event left over from before: look again.
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

    /// Wakes whoever waits.
    func interrupt() {
        wake(.interrupted)
    }

    /// Wakes whoever waits because the socket has something.
    func isReadable() {
        wake(.readable)
    }

    /// Wakes whoever has waited too long.
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
