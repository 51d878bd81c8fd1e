import Foundation

@testable import PosternClient

/// Clocks that a test moves. Who sleeps moves them too, so that no test waits.
final class VirtualTime: @unchecked Sendable {
    private let lock = NSLock()
    private var wall = Date(timeIntervalSince1970: 1_800_000_000)
    private var up: TimeInterval = 1000
    private var pauses: [TimeInterval] = []

    var now: Date { lock.withLock { wall } }
    var uptime: TimeInterval { lock.withLock { up } }
    /// How long was slept, in order.
    var sleeps: [TimeInterval] { lock.withLock { pauses } }

    /// Time passes.
    func pass(_ seconds: TimeInterval) { lock.withLock { (wall, up) = (wall + seconds, up + seconds) } }

    /// Somebody sets the clock.
    func set(by seconds: TimeInterval) { lock.withLock { wall += seconds } }

    func sleep(_ seconds: TimeInterval) async throws {
        try Task.checkCancellation()
        lock.withLock {
            pauses.append(seconds)
            (wall, up) = (wall + seconds, up + seconds)
        }
        await Task.yield()
        try Task.checkCancellation()
    }

    var surroundings: Surroundings {
        var surroundings = Surroundings()
        surroundings.now = { self.now }
        surroundings.uptime = { self.uptime }
        surroundings.sleep = { try await self.sleep($0) }
        return surroundings
    }
}

/// A door that opens once.
actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func open() {
        isOpen = true
        for waiter in waiting { waiter.resume() }
        waiting = []
    }

    func pass() async {
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }
}
