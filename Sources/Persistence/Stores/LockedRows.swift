import Synchronization

/// Remembers in which realms a row was found locked within the last seconds, and bounds how many requests wait for such
/// rows.
final class LockedRows: Sendable {
    private struct Trouble {
        var until: ContinuousClock.Instant
        var waiting = 0
    }

    private let realms = Mutex<[UUIDValue: Trouble]>([:])
    /// Lets a realm without trouble pass without the lock.
    private let count = Atomic<Int>(0)

    /// How long a realm is treated with caution after a row was found locked.
    private static let memory = Duration.seconds(5)
    /// Requests of one realm that may wait for locked rows; those beyond are answered at once.
    private static let maximumWaiting = 256

    /// Whether a row of the realm was found locked within the last seconds.
    func areKnown(in realm: UUIDValue) -> Bool {
        guard count.load(ordering: .relaxed) > 0 else { return false }
        let now = ContinuousClock.now
        return realms.withLock { realms in
            guard let trouble = realms[realm] else { return false }
            if trouble.until > now { return true }
            if trouble.waiting == 0 { realms[realm] = nil }
            count.store(realms.count, ordering: .relaxed)
            return false
        }
    }

    /// A row of the realm is locked.
    func seen(in realm: UUIDValue) {
        let until = ContinuousClock.now + Self.memory
        realms.withLock { realms in
            realms[realm, default: Trouble(until: until)].until = until
            count.store(realms.count, ordering: .relaxed)
        }
    }

    /// One more request waits. - Returns: `false` when as many do as may.
    func startsWaiting(in realm: UUIDValue) -> Bool {
        let until = ContinuousClock.now + Self.memory
        return realms.withLock { realms in
            guard realms[realm, default: Trouble(until: until)].waiting < Self.maximumWaiting else { return false }
            realms[realm, default: Trouble(until: until)].waiting += 1
            count.store(realms.count, ordering: .relaxed)
            return true
        }
    }

    /// One request waits no longer.
    func endsWaiting(in realm: UUIDValue) {
        realms.withLock { $0[realm]?.waiting -= 1 }
    }
}
