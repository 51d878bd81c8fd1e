import Persistence

/// Per-process cache of leased permits, remembered refusals and in-flight database requests. Losing it only forfeits
/// leases; it never grants a permit beyond the limit.
struct PermitLedger {
    struct Key: Hashable {
        let realm: UUIDValue
        let policy: RateLimit.Policy
        let subject: RateLimiter.Subject
    }

    /// One budget that a request needs a permit of.
    struct Budget {
        let key: Key
        let limit: RateLimit
    }

    /// The permits of one request: all of them, or none.
    struct Drawn {
        enum Result {
            /// Every permit is leased, or the database must grant it. The keys asked for count as being asked about
            /// until ``answer(_:)``.
            case drawn(asking: [(budget: Budget, wanted: Int)])
            /// An enforced limit has no permit for this many seconds.
            case refused(Budget, seconds: Double)
            /// Another request is asking the database about this key.
            case wait(Key)
        }

        let result: Result
        /// The remembered refusals that were met, those of limits in mode `log-only` included.
        var exceeded: [(budget: Budget, seconds: Double)] = []
    }

    /// Where one permit comes from.
    enum Draw {
        /// A lease; the permit is taken.
        case leased
        /// There is none for this many seconds.
        case refused(seconds: Double)
        /// The database, so many at once.
        case ask(wanted: Int)
        /// The answer that another request is waiting for.
        case wait
    }

    private struct Entry {
        /// What the memory below was made under; another limit makes it void.
        let limit: RateLimit
        var leased = 0
        var leasedUntil: ContinuousClock.Instant
        /// The size of the last block asked for.
        var block = 1
        var refusedUntil: ContinuousClock.Instant?
        /// A refusal is asked for again before it ends: an administrator may have emptied the budget.
        var recheckAt: ContinuousClock.Instant
    }

    /// Resumed with whether the database answered.
    typealias Waiter = CheckedContinuation<Bool, Never>

    private var entries: [Key: Entry] = [:]
    /// Keys with a statement in flight to the database, each with the requests that wait for its answer.
    private var asked: [Key: [Waiter]] = [:]
    /// Per key, the number of waiters that were resumed and have not drawn since.
    private var awoken: [Key: Int] = [:]

    /// The most keys remembered, some 30 MB; beyond it the cache is emptied.
    static let maximumEntries = 100_000
    /// A lease not used within this time is forfeited, so a hoard never adds to a later burst.
    private static let leaseLifetime = Duration.seconds(2)
    /// How long a refusal is believed without asking the database.
    private static let refusalMemory = Duration.milliseconds(900)

    var count: Int { entries.count }
    var waiting: Int { asked.values.reduce(0) { $0 + $1.count } }

    /// Draws the permits of all budgets, or none.
    /// - Parameters:
    ///   - waitedFor: the key whose answer this request has just waited for.
    ///   - patient: whether the request would wait for another one's answer.
    mutating func draw(
        _ budgets: [Budget], waitedFor: Key?, patient: Bool, _ now: ContinuousClock.Instant
    ) -> Drawn {
        let waiting = waitedFor.map { returned(to: $0) } ?? 1
        var leased: [Key] = []
        var asking: [(budget: Budget, wanted: Int)] = []
        var exceeded: [(budget: Budget, seconds: Double)] = []
        for budget in budgets {
            let demand = budget.key == waitedFor ? waiting : 1
            switch draw(budget.key, budget.limit, demand: demand, patient: patient, now) {
            case .leased: leased.append(budget.key)
            case .ask(let wanted): asking.append((budget, wanted))
            case .refused(let seconds):
                exceeded.append((budget, seconds))
                guard budget.limit.enforced else { continue }
                undo(leased, asking)
                return Drawn(result: .refused(budget, seconds: seconds), exceeded: exceeded)
            case .wait:
                undo(leased, asking)
                return Drawn(result: .wait(budget.key))
            }
        }
        return Drawn(result: .drawn(asking: asking), exceeded: exceeded)
    }

    /// Makes what was drawn for a refused request available to the next one.
    private mutating func undo(_ leased: [Key], _ asking: [(budget: Budget, wanted: Int)]) {
        for key in leased { entries[key]?.leased += 1 }
        // No request waits for them yet: they were marked under this lock.
        for (budget, _) in asking { _ = answer(budget.key) }
    }

    /// Takes one permit, or says where it is to come from. After `.ask` the key counts as being asked about until
    /// ``answer(_:)``.
    /// - Parameters:
    ///   - demand: how many requests want one at this moment.
    ///   - patient: whether this one would wait for another's answer.
    mutating func draw(
        _ key: Key, _ limit: RateLimit, demand: Int, patient: Bool, _ now: ContinuousClock.Instant
    ) -> Draw {
        var entry = entries[key]
        if entry?.limit != limit { entry = nil }
        if let leased = entry?.leased, let until = entry?.leasedUntil, leased > 0, until > now {
            entries[key]?.leased = leased - 1
            return .leased
        }
        let refusedUntil = entry?.refusedUntil.flatMap { $0 > now ? $0 : nil }
        if let refusedUntil, let entry, entry.recheckAt > now {
            return .refused(seconds: now.duration(to: refusedUntil) / .seconds(1))
        }
        // A look is answered by the row as it stands: it does not wait for another look's statement.
        guard key.subject.amount > 0 else { return .ask(wanted: 1) }
        if asked[key] == nil {
            asked[key] = []
        } else if patient {
            return .wait
        }
        var wanted = 1
        if refusedUntil != nil {
            // This request asks; requests that arrive meanwhile are refused from memory.
            entry?.recheckAt = now + Self.refusalMemory
        } else if let known = entry {
            // Used up in time: twice as many; lapsed: back to one.
            wanted = known.leasedUntil > now ? min(known.block * 2, Self.maximumBlock(limit, key.subject.dimension)) : 1
            entry?.block = wanted
            entry?.leased = 0
        }
        if let entry { entries[key] = entry }
        return .ask(wanted: max(wanted, min(demand, limit.burst)))
    }

    /// How long a remembered refusal remains valid, in seconds. Takes no permit and does not ask the database.
    func refusal(of key: Key, _ limit: RateLimit, _ now: ContinuousClock.Instant) -> Double? {
        guard let entry = entries[key], entry.limit == limit, let until = entry.refusedUntil, until > now else {
            return nil
        }
        return now.duration(to: until) / .seconds(1)
    }

    /// Waits for the answer about a key. - Returns: `false` when no request is in flight any more.
    mutating func wait(for key: Key, _ waiter: Waiter) -> Bool {
        guard asked[key] != nil else { return false }
        asked[key]?.append(waiter)
        return true
    }

    /// Ends the request in flight for a key, answered or not. - Returns: its waiters.
    mutating func answer(_ key: Key) -> [Waiter] {
        guard let waiters = asked.removeValue(forKey: key), !waiters.isEmpty else { return [] }
        awoken[key, default: 0] += waiters.count
        return waiters
    }

    /// A resumed waiter is about to draw. - Returns: how many want a permit now: this one and the others resumed with
    /// it.
    mutating func returned(to key: Key) -> Int {
        let others = (awoken[key] ?? 1) - 1
        awoken[key] = others > 0 ? others : nil
        return others + 1
    }

    /// Books a block, of which one permit goes to the request that asked.
    mutating func granted(_ permits: Int, _ key: Key, _ limit: RateLimit, _ now: ContinuousClock.Instant) {
        guard permits > 1 || Self.maximumBlock(limit, key.subject.dimension) > 1 else {
            entries[key] = nil
            return
        }
        update(key, limit, now) { entry in
            entry.leased += permits - 1
            entry.leasedUntil = now + Self.leaseLifetime
            entry.refusedUntil = nil
        }
    }

    /// Remembers that there will be no permit for some time.
    mutating func refused(for seconds: Double, _ key: Key, _ limit: RateLimit, _ now: ContinuousClock.Instant) {
        update(key, limit, now) { entry in
            entry.refusedUntil = now + .seconds(seconds)
            entry.recheckAt = now + min(.seconds(seconds), Self.refusalMemory)
        }
    }

    private mutating func update(
        _ key: Key, _ limit: RateLimit, _ now: ContinuousClock.Instant, _ change: (inout Entry) -> Void
    ) {
        var entry = entries[key]
        if entry == nil, entries.count >= Self.maximumEntries { entries.removeAll(keepingCapacity: true) }
        if entry?.limit != limit { entry = nil }
        var changed = entry ?? Entry(limit: limit, leasedUntil: now, recheckAt: now)
        change(&changed)
        entries[key] = changed
    }

    /// Permits of narrow dimensions are requested one by one, or one per waiting request; those of broad dimensions in
    /// blocks of at most a sixty-fourth of the burst.
    private static func maximumBlock(_ limit: RateLimit, _ dimension: RateLimit.Dimension) -> Int {
        switch dimension {
        case .target, .targetTotal, .failures, .registrations, .wrongCodes, .prefix, .country, .spend: 1
        case .source, .client, .app: max(1, min(limit.burst / 64, 4096))
        }
    }
}
