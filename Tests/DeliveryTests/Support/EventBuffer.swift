import Foundation
import Synchronization

/// Lines that arrive on a pipe, for one reader at a time that waits for the next of a name.
final class EventBuffer: Sendable {
    private struct State {
        var received: [MailServer.Event] = []
        var position = 0
        var waiter: (name: String, continuation: CheckedContinuation<MailServer.Event, any Error>)?
        var hasEnded = false
    }

    private let state = Mutex(State())

    var all: [MailServer.Event] { state.withLock { $0.received } }

    /// Takes in one line of JSON, or the end of the output.
    func append(_ line: Data?) {
        state.withLock { state in
            if let line {
                if let event = try? JSONDecoder().decode(MailServer.Event.self, from: line) {
                    state.received.append(event)
                }
            } else {
                state.hasEnded = true
            }
            if let waiter = state.waiter {
                if let event = Self.take(waiter.name, &state) {
                    state.waiter = nil
                    waiter.continuation.resume(returning: event)
                } else if state.hasEnded {
                    state.waiter = nil
                    waiter.continuation.resume(throwing: CocoaError(.fileReadUnknown))
                }
            }
        }
    }

    /// The next event of that name, skipping others. - Throws: at the end of the output.
    func next(_ name: String) async throws -> MailServer.Event {
        try await withCheckedThrowingContinuation { continuation in
            state.withLock { state in
                if let event = Self.take(name, &state) {
                    continuation.resume(returning: event)
                } else if state.hasEnded {
                    continuation.resume(throwing: CocoaError(.fileReadUnknown))
                } else {
                    state.waiter = (name, continuation)
                }
            }
        }
    }

    private static func take(_ name: String, _ state: inout State) -> MailServer.Event? {
        while state.position < state.received.count {
            let event = state.received[state.position]
            state.position += 1
            if event.event == name { return event }
        }
        return nil
    }
}
