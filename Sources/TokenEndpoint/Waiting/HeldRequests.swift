import HTTPTypes

/// What a held request found when it polled.
enum Poll<Found: Sendable>: Sendable {
    /// To be answered at once.
    case found(Found)
    /// To be answered when the time is up, and polled for again when the topic changes.
    case nothing(Found, WaitTopic)
}

extension LongPolls {
    /// What a request is answered with.
    struct Held<Found: Sendable>: Sendable {
        let found: Found
        /// Whether there was no place to wait: the client comes back later.
        let isFull: Bool

        /// The answer, with `Retry-After` where there was no place.
        func answer(_ make: (Found) -> Answer) -> Answer {
            let answer = make(found)
            return isFull ? answer.retriable(after: 5) : answer
        }
    }

    /// Polls, and polls again at every change, until there is something to answer, the time is up, the client has gone
    /// or the server stops.
    /// - Parameters:
    ///   - seconds: how long the answer may be held, from the request's arrival; 0: it polls once.
    ///   - poll: one statement. It must throw what ends the wait, for example that a key is no device any more.
    /// - Throws: `unavailable` when the request came to no poll in that time; what `poll` threw.
    func hold<Found: Sendable>(
        _ exchange: Exchange, for seconds: Int, _ poll: @Sendable () async throws -> Poll<Found>
    ) async throws -> Held<Found> {
        guard seconds > 0, enter() else {
            switch try await poll() {
            case .found(let found): return Held(found: found, isFull: false)
            case .nothing(let found, _): return Held(found: found, isFull: seconds > 0)
            }
        }
        defer { leave() }
        let (deadline, end) = (exchange.arrivedAt + .seconds(seconds), exchange.request.end)
        var reason = Outcome.unsure
        while true {
            let mark = mark
            switch try await inTurn(isUrgent: reason == .woken, until: deadline, end, poll) {
            case .found(let found): return Held(found: found, isFull: false)
            case .nothing(let found, let topic):
                reason = await wait(for: topic, since: mark, until: deadline, end)
                if reason == .over { return Held(found: found, isFull: false) }
            }
        }
    }
}
