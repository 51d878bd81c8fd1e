import HTTPTypes
import NIOCore
import Synchronization
@testable import TokenEndpoint

/// Requests that wait until they are let go, and what is known of them.
final class Gate: Sendable {
    private struct State {
        var isOpen = true
        var waiting: [CheckedContinuation<Void, Never>] = []
        var requests: [Request] = []
        var running = 0
        var mostRunning = 0
    }

    private let state = Mutex(State())

    var requests: [Request] { state.withLock { $0.requests } }
    var mostRunning: Int { state.withLock { $0.mostRunning } }

    func shut() { state.withLock { $0.isOpen = false } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Answers with method, path and length of the body.
    var respond: Respond {
        { request, _ in
            self.state.withLock { state in
                state.requests.append(request)
                state.running += 1
                state.mostRunning = max(state.mostRunning, state.running)
            }
            await withCheckedContinuation { continuation in
                let isOpen = self.state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
            self.state.withLock { $0.running -= 1 }
            if request.isBodyTooLarge { return Answer(.contentTooLarge) }
            return Answer(
                json: Array("\(request.method.rawValue) \(request.path ?? "none") \(request.body.readableBytes)".utf8))
        }
    }
}
