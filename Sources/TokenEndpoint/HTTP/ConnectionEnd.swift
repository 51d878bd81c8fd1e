import Synchronization

/// Tells a request that is held that its answer should leave now: its client has gone, or the server stops. One for
/// each connection; a connection has one request at a time.
package final class ConnectionEnd: Sendable {
    private struct State {
        var hasEnded = false
        var onEnd: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// From now on nothing on this connection is held.
    func signal() {
        let onEnd = state.withLock { state in
            state.hasEnded = true
            return state.onEnd.take()
        }
        onEnd?()
    }

    /// Calls `body` once, at the signal; at once if it was given already.
    func onSignal(_ body: @escaping @Sendable () -> Void) {
        let hasEnded = state.withLock { state in
            if !state.hasEnded { state.onEnd = body }
            return state.hasEnded
        }
        if hasEnded { body() }
    }

    /// Forgets what ``onSignal(_:)`` was to call.
    func clear() {
        state.withLock { $0.onEnd = nil }
    }
}
