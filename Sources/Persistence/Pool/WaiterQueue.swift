/// Callers in the order they came, each with a number and a deadline. All wait equally long, so the first is due first.
struct WaiterQueue<Waiter> {
    private var order: [(number: UInt64, deadline: ContinuousClock.Instant)] = []
    private var head = 0
    private var waiters: [UInt64: Waiter] = [:]

    var count: Int { waiters.count }
    var isEmpty: Bool { waiters.isEmpty }

    /// When the first in line is due.
    var firstDeadline: ContinuousClock.Instant? {
        mutating get {
            skipRemoved()
            return head < order.count ? order[head].deadline : nil
        }
    }

    mutating func append(_ waiter: Waiter, number: UInt64, deadline: ContinuousClock.Instant) {
        order.append((number, deadline))
        waiters[number] = waiter
    }

    mutating func remove(number: UInt64) -> Waiter? {
        waiters.removeValue(forKey: number)
    }

    mutating func popFirst() -> Waiter? {
        skipRemoved()
        guard head < order.count else { return nil }
        defer { head += 1 }
        return waiters.removeValue(forKey: order[head].number)
    }

    mutating func removeExpired(now: ContinuousClock.Instant) -> [Waiter] {
        var expired: [Waiter] = []
        while let deadline = firstDeadline, deadline <= now, let waiter = popFirst() { expired.append(waiter) }
        return expired
    }

    mutating func removeAll() -> [Waiter] {
        var all: [Waiter] = []
        while let waiter = popFirst() { all.append(waiter) }
        return all
    }

    /// Steps over those who left, and gives their memory back now and then.
    private mutating func skipRemoved() {
        while head < order.count, waiters[order[head].number] == nil { head += 1 }
        if head > 64, head * 2 > order.count {
            order.removeFirst(head)
            head = 0
        }
    }
}
