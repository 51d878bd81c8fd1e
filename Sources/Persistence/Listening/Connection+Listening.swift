import CLibPQ
import Glibc

extension Connection {
    /// Subscribes to channels.
    func listen(to channels: [String]) throws(StoreError) {
        let sql =
            channels
            .map {
                "LISTEN \"\($0.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\""))\""
            }
            .joined(separator: "; ")
        do {
            guard try simpleQuery(sql, within: statementTimeout).isSuccess else {
                throw StoreError.unavailable(.connectFailed)
            }
        } catch {
            throw .unavailable(.connectionLost)
        }
    }

    /// Waits for notifications until there are some, `deadline` has passed (then none), or the operation is cancelled
    /// (none).
    func notifications(until deadline: ContinuousClock.Instant) throws(Interruption) -> [ListenConnection.Event] {
        guard let session else { throw .lost }
        while true {
            let events = received(session)
            if !events.isEmpty { return events }
            guard !isTerminated else { throw .lost }
            guard ContinuousClock.now < deadline, !cancellation.isCancelled(operation) else { return [] }
            do throws(Interruption) {
                let ready = try wait(session, for: POLLIN, deadline: deadline)
                if ready.socket, PQconsumeInput(session) == 0 { throw Interruption.lost }
            } catch {
                guard error == .overdue else { throw error }
                return []
            }
        }
    }

    private func received(_ session: OpaquePointer) -> [ListenConnection.Event] {
        var events: [ListenConnection.Event] = []
        while let notification = PQnotifies(session) {
            defer { PQfreemem(notification) }
            guard let channel = notification.pointee.relname, let payload = notification.pointee.extra else { continue }
            events.append(.notification(channel: String(cString: channel), payload: String(cString: payload)))
        }
        return events
    }
}
