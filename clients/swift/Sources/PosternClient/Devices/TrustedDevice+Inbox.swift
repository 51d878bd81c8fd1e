import Foundation

extension TrustedDevice {
    /// The requests that wait for an answer: what there is now, then every change, while somebody reads. Readers share their
    /// calls to the server.
    ///
    /// It ends with an error when the server refuses this device, such as when it was removed elsewhere. Lost answers do not
    /// end it.
    public var inbox: AsyncThrowingStream<Inbox, any Error> {
        let reader = InboxReader(client)
        return AsyncThrowingStream { try await reader.next() }
    }
}

/// One reader of the inbox.
private actor InboxReader {
    private let client: PosternClient
    private var last: TrustedDevice.Inbox?

    init(_ client: PosternClient) { self.client = client }

    func next() async throws -> TrustedDevice.Inbox? {
        while true {
            let inbox = try await client.inbox(isFirst: last == nil)
            if inbox != last {
                last = inbox
                return inbox
            }
        }
    }
}

/// The call for the inbox that is under way, and the outcome of the last one.
struct SharedInbox {
    var call: SharedTask<TrustedDevice.Inbox>?
    var last: (inbox: TrustedDevice.Inbox, came: TimeInterval)?
    /// Before this, by `uptime`, there is no next call.
    var due: TimeInterval = 0
}

extension PosternClient {
    /// The inbox of the present call, or of the next one. - Parameter isFirst: what is known will do.
    func inbox(isFirst: Bool) async throws -> TrustedDevice.Inbox {
        if let call = inbox.call {
            // A call may be held for 25 seconds, because there was nothing when it began.
            if isFirst, let last = inbox.last, surroundings.uptime() - last.came < 30 { return last.inbox }
            return try await call.value()
        }
        let call = SharedTask { try await self.callInbox(waiting: !isFirst) }
        inbox.call = call
        return try await call.value()
    }

    private func callInbox(waiting: Bool) async throws -> TrustedDevice.Inbox {
        defer { inbox.call = nil }
        var pauses = Pauses()
        while true {
            let pause = inbox.due - surroundings.uptime()
            if waiting, pause > 0 { try await surroundings.sleep(pause) }
            let began = surroundings.uptime()
            do {
                let answer = try await deviceCall("GET", "/connect/approvals?wait=\(waiting ? 25 : 0)")
                let came = surroundings.uptime()
                let inbox = try answer.item(TrustedDevice.Inbox.init)
                self.inbox.last = (inbox, came)
                // An answer that was not held is the same the next moment: what it shows was there already.
                let rest = came - began < 5 ? max(3, answer.retryAfter ?? 0) : 0
                self.inbox.due = came + rest
                return inbox
            } catch PosternError.unavailable(let retryAfter) {
                try await surroundings.sleep(max(pauses.next(), retryAfter ?? 0))
            } catch PosternError.rateLimited(let retryAfter) {
                try await surroundings.sleep(max(pauses.next(), retryAfter))
            }
        }
    }
}
