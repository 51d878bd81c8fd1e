import Synchronization

/// Lends things, the one returned last first; callers wait in line.
final class LeasePool<Resource: Sendable>: Sendable {
    private struct State {
        var free: [Resource]
        var waiting: [CheckedContinuation<Resource, Never>] = []
        var head = 0
    }

    private let state: Mutex<State>

    init(_ resources: [Resource]) { state = Mutex(State(free: resources)) }

    func checkout() async -> Resource {
        if let resource = state.withLock({ $0.free.popLast() }) { return resource }
        return await withCheckedContinuation { continuation in
            let resource = state.withLock { state -> Resource? in
                if let resource = state.free.popLast() { return resource }
                state.waiting.append(continuation)
                return nil
            }
            if let resource { continuation.resume(returning: resource) }
        }
    }

    func checkin(_ resource: Resource) {
        let waiter = state.withLock { state -> CheckedContinuation<Resource, Never>? in
            guard state.head < state.waiting.count else {
                state.free.append(resource)
                return nil
            }
            defer {
                state.head += 1
                if state.head > 64, state.head * 2 > state.waiting.count {
                    state.waiting.removeFirst(state.head)
                    state.head = 0
                }
            }
            return state.waiting[state.head]
        }
        waiter?.resume(returning: resource)
    }
}
