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
            do {
                let inbox = try await client.inbox(isFirst: last == nil)
                if inbox != last {
                    last = inbox
                    return inbox
                }
            } catch PosternError.unavailable {
                // The next call comes after a pause. It is this reader that goes on: without one, nothing does.
            } catch PosternError.rateLimited {}
        }
    }
}

/// The call for the inbox that is under way, and the outcome of the last one.
struct SharedInbox {
    var call: SharedTask<TrustedDevice.Inbox>?
    var last: (inbox: TrustedDevice.Inbox, came: TimeInterval)?
    /// Before this, by `uptime`, there is no next call.
    var due: TimeInterval = 0
    /// Whether the last call was lost.
    var isAway = false
    var pauses = Pauses()
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
        let pause = inbox.due - surroundings.uptime()
        if waiting || inbox.isAway, pause > 0 { try await surroundings.sleep(pause) }
        let began = surroundings.uptime()
        do {
            let wait = waiting ? 25 : 0
            let answer = try await deviceCall("GET", "/connect/approvals?wait=\(wait)", held: TimeInterval(wait))
            let shown = try answer.item(TrustedDevice.Inbox.init)
            let came = surroundings.uptime()
            inbox.last = (shown, came)
            (inbox.isAway, inbox.pauses) = (false, Pauses())
            // An answer that was not held is the same the next moment: what it shows was there already.
            inbox.due = came + (came - began < 5 ? max(3, answer.retryAfter ?? 0) : 0)
            return shown
        } catch {
            switch error as? PosternError {
            case .unavailable(let retryAfter)?: callLater(retryAfter)
            case .rateLimited(let retryAfter)?: callLater(retryAfter)
            default: break
            }
            throw error
        }
    }

    private func callLater(_ retryAfter: TimeInterval?) {
        inbox.isAway = true
        inbox.due = surroundings.uptime() + max(inbox.pauses.next(), retryAfter ?? 0)
    }
}
