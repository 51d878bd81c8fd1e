/// Waiting callers, each with a number, a deadline and the share it belongs to. The share that holds fewest connections
/// is served first; equal shares take turns; within a share the order is first in, first out. All have the same maximum
/// wait, so the first to arrive is the first to be due.
struct WaiterQueue<Waiter> {
    private struct Entry {
        let waiter: Waiter
        let share: PoolShare
    }

    private var entries: [UInt64: Entry] = [:]
    /// All waiters in the order of arrival, for the deadlines.
    private var order = NumberQueue<ContinuousClock.Instant>()
    private var lines: [PoolShare: (queue: NumberQueue<Void>, count: Int)] = [:]
    /// Shares with waiters, the one whose turn is next first.
    private var turns: [PoolShare] = []

    var count: Int { entries.count }
    var isEmpty: Bool { entries.isEmpty }

    /// Waiters of one share.
    func count(of share: PoolShare) -> Int { lines[share]?.count ?? 0 }

    /// When the first in line is due.
    var firstDeadline: ContinuousClock.Instant? {
        mutating get { order.first { entries[$0] != nil }?.value }
    }

    mutating func append(_ waiter: Waiter, of share: PoolShare, number: UInt64, deadline: ContinuousClock.Instant) {
        entries[number] = Entry(waiter: waiter, share: share)
        order.append(number, deadline)
        if lines[share] == nil { turns.append(share) }
        lines[share, default: (NumberQueue(), 0)].queue.append(number, ())
        lines[share]?.count += 1
    }

    mutating func remove(number: UInt64) -> Waiter? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        lines[entry.share]?.count -= 1
        if count(of: entry.share) == 0 {
            lines[entry.share] = nil
            turns.removeAll { $0 == entry.share }
        }
        return entry.waiter
    }

    /// The first waiter of the share that ranks lowest; among equals, of the one whose turn it is. That share's next
    /// turn comes after all others'.
    /// - Parameter rank: 0 or more, `nil` for a share that may have nothing now.
    mutating func popFirst(by rank: (PoolShare) -> Int?) -> (waiter: Waiter, share: PoolShare)? {
        var best: (index: Int, rank: Int)?
        for (index, share) in turns.enumerated() {
            guard let rank = rank(share), rank < best?.rank ?? .max else { continue }
            best = (index, rank)
            if rank == 0 { break }
        }
        guard let best else { return nil }
        let share = turns.remove(at: best.index)
        turns.append(share)
        guard let number = lines[share]?.queue.first(where: { entries[$0] != nil })?.number,
            let waiter = remove(number: number)
        else { return nil }
        return (waiter, share)
    }

    mutating func removeExpired(now: ContinuousClock.Instant) -> [Waiter] {
        var expired: [Waiter] = []
        while let first = order.first(where: { entries[$0] != nil }), first.value <= now {
            if let waiter = remove(number: first.number) { expired.append(waiter) }
        }
        return expired
    }

    mutating func removeAll() -> [Waiter] {
        defer { self = WaiterQueue() }
        return entries.sorted { $0.key < $1.key }.map(\.value.waiter)
    }
}

/// Numbers in the order they came. Those who left are stepped over, and their memory is given back now and then.
private struct NumberQueue<Value> {
    private var elements: [(number: UInt64, value: Value)] = []
    private var head = 0

    mutating func append(_ number: UInt64, _ value: Value) {
        elements.append((number, value))
    }

    mutating func first(where isThere: (UInt64) -> Bool) -> (number: UInt64, value: Value)? {
        while head < elements.count, !isThere(elements[head].number) { head += 1 }
        if head > 64, head * 2 > elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return head < elements.count ? elements[head] : nil
    }
}
