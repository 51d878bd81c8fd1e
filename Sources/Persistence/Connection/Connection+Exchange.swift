import CLibPQ
import Glibc

/// Talking to the server: send, wait on socket and cancellation at once, collect.
extension Connection {
    /// What to do when the task that asked is cancelled while the server works.
    enum CancellationPolicy {
        /// Ask the server to stop (`PQcancel`) and wait for its word.
        case stop
        /// Let it finish: a cancel that hits a synchronous commit's wait would be answered with success before the
        /// standby has it.
        case finish
    }

    /// How long the server may take to obey a cancel.
    private static var cancelGrace: Duration { .seconds(1) }

    /// Runs SQL without parameters, possibly several statements.
    /// - Returns: the first failed result, or the last.
    func simpleQuery(_ sql: String, within timeout: Duration) throws(Interruption) -> ResultHandle {
        guard let session, PQsendQuery(session, sql) == 1 else { throw .lost }
        return try collect(session, deadline: .now + timeout, policy: .finish)
    }

    /// Waits for all results of what was sent, or for those that have not been received yet.
    /// - Returns: the first failed result, or the last.
    func collect(
        _ session: OpaquePointer, deadline: ContinuousClock.Instant, policy: CancellationPolicy
    ) throws(Interruption) -> ResultHandle {
        try flush(session, deadline: deadline)
        var deadline = deadline
        while let next = try nextResult(session, deadline: &deadline, policy: policy) { keep(next) }
        guard let kept = received.take() else { throw .lost }
        return kept
    }

    /// Keeps the first failed result, or the last: after a failure only the end of the exchange is of interest.
    func keep(_ next: consuming ResultHandle) {
        if let hasSucceeded = received?.isSuccess, !hasSucceeded { return }
        received = consume next
    }

    /// Waits for the next result; `nil` at the end of a statement's results.
    func nextResult(
        _ session: OpaquePointer, deadline: inout ContinuousClock.Instant, policy: CancellationPolicy
    ) throws(Interruption) -> ResultHandle? {
        var policy = policy
        while PQisBusy(session) != 0 {
            let ready = try wait(session, for: POLLIN, deadline: deadline)
            if ready.isCancelled, policy == .stop, cancellation.isCancelled(operation) {
                requestCancel(session)
                policy = .finish
                deadline = min(deadline, .now + Self.cancelGrace)
            }
            if ready.socket, PQconsumeInput(session) == 0 { throw .lost }
        }
        guard let result = PQgetResult(session) else { return nil }
        return ResultHandle(adopting: result)
    }

    /// Sends what libpq has buffered. Reads meanwhile: a server that waits for us to read would never read itself.
    func flush(_ session: OpaquePointer, deadline: ContinuousClock.Instant) throws(Interruption) {
        while true {
            let status = PQflush(session)
            if status == 0 { return }
            guard status == 1 else { throw .lost }
            _ = try wait(session, for: POLLIN | POLLOUT, deadline: deadline)
            guard PQconsumeInput(session) == 1 else { throw .lost }
        }
    }

    /// Sleeps until the socket is ready, the operation is cancelled, or the deadline.
    func wait(
        _ session: OpaquePointer, for events: Int32, deadline: ContinuousClock.Instant
    ) throws(Interruption) -> (socket: Bool, isCancelled: Bool) {
        let socket = PQsocket(session)
        guard socket >= 0 else { throw .lost }
        var descriptors = (
            pollfd(fd: socket, events: Int16(truncatingIfNeeded: events), revents: 0),
            pollfd(fd: cancellation.fileDescriptor, events: Int16(POLLIN), revents: 0)
        )
        let milliseconds = (deadline - .now).milliseconds
        let count = withUnsafeMutablePointer(to: &descriptors) { pointer in
            pointer.withMemoryRebound(to: pollfd.self, capacity: 2) {
                poll($0, 2, Int32(clamping: max(0, milliseconds + 1)))
            }
        }
        if count == 0, deadline <= .now { throw .overdue }
        let isCancelled = descriptors.1.revents != 0
        if isCancelled { cancellation.drain() }
        return (descriptors.0.revents != 0, isCancelled)
    }

    /// Notices what happened to an idle session: a server that ended it has said so, or closed the socket. No round
    /// trip.
    func isDead(_ session: OpaquePointer) -> Bool {
        // The last word (57P01) and the end of the stream may need two reads.
        for _ in 0..<3 {
            var descriptor = pollfd(fd: PQsocket(session), events: Int16(POLLIN), revents: 0)
            guard poll(&descriptor, 1, 0) > 0 else { break }
            if PQconsumeInput(session) == 0 { return true }
            _ = PQisBusy(session)  // parses what was read
        }
        return isTerminated
    }

    private func requestCancel(_ session: OpaquePointer) {
        guard let cancel = PQgetCancel(session) else { return }
        var message: [CChar] = Array(repeating: 0, count: 256)
        PQcancel(cancel, &message, Int32(message.count))
        PQfreeCancel(cancel)
    }
}
