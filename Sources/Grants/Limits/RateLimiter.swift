public import Persistence
import Synchronization

/// Decides limits together with the database, without an extra round trip.
///
/// PostgreSQL is the authority: one GCRA row per key. To keep a thousand users behind one address from queueing for one
/// row lock, this process leases permits of the broad dimensions in blocks: one permit at first, twice as many each
/// time a block was used up before its lease ended. A block is part of the same exact budget, so all nodes together
/// never pass more than the limit, and a lone request costs exactly its own permit. A refusal is remembered until a
/// permit could be available. About once a second one of the refused requests asks the database again; the others do
/// not reach it.
///
/// One request of this process at a time asks the database about a key. Other requests wait for its answer, and the
/// next one asks for all of them. So a flood of one key occupies one connection of the pool.
public final class RateLimiter: Sendable {
    /// One budget to count against: a dimension and the value (an address, a client …) it belongs to.
    public struct Subject: Sendable, Hashable {
        let dimension: RateLimit.Dimension
        let value: String
        let part: RateLimit.Part
        /// Permits that one request takes; 0: it takes none, but there must be one.
        let amount: Int

        /// Counts `value` (an address, a client key …) under `dimension`.
        public init(_ dimension: RateLimit.Dimension, _ value: String) {
            self.init(dimension, value, part: .whole)
        }

        /// Counts `value` under a part of the budget of `dimension`, `amount` times.
        init(_ dimension: RateLimit.Dimension, _ value: String, part: RateLimit.Part, amount: Int = 1) {
            self.dimension = dimension
            self.value = value
            self.part = part
            self.amount = amount
        }

        /// The key of the budget in the database.
        func key(_ policy: RateLimit.Policy) -> String {
            let part =
                switch part {
                case .whole, .open: ""
                case .reserve: "reserve|"
                }
            return "\(policy.rawValue)|\(dimension.rawValue)|\(part)\(value)"
        }
    }

    /// A limit that had no permit for a request, enforced or not.
    public struct Excess: Sendable {
        /// The realm's slug.
        public let realm: String
        /// Which limit, and when it will have a permit.
        public let limit: TokenError.ExceededLimit
        /// The value the budget belongs to; `nil` when it would name a person.
        public let subject: String?
        /// `false` in mode `log-only`: the request was not refused.
        public let enforced: Bool
        /// Whether the database said so just now; `false` when it was remembered, as it is in a flood.
        public let isNew: Bool
    }

    /// How often a request waits for another one's answer before it asks on its own.
    private static let maximumWaits = 8

    let ledger = Mutex(PermitLedger())
    private let permits: PermitStore?
    let clock: @Sendable () -> ContinuousClock.Instant
    private let observe: @Sendable (Excess) -> Void

    /// - Parameters:
    ///   - permits: for requests that need no other statement; without it those are not counted.
    ///   - clock: the monotonic clock; injected by tests.
    ///   - observe: told of every request that exceeded a limit.
    public init(
        permits: PermitStore?, clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        observe: @escaping @Sendable (Excess) -> Void = { _ in }
    ) {
        self.permits = permits
        self.clock = clock
        self.observe = observe
    }

    /// Keys this process remembers something of.
    var rememberedKeys: Int { ledger.withLock { $0.count } }

    /// Requests that wait for another one's answer.
    var waitingRequests: Int { ledger.withLock { $0.waiting } }

    /// Runs a statement that takes the permits of a request before it does its work.
    ///
    /// - Parameter statement: gets what the database must still grant beside the leases of this process. It answers
    ///   with what the database said about these permits, and with no result when one of them was refused.
    /// - Throws: `rate_limited` when there is no permit; what `statement` threw, in which case no permit counts as
    ///   taken.
    public func admitting<R>(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm,
        _ statement: (PermitRequest) async throws -> (R?, PermitVerdict)
    ) async throws -> R {
        let reservation = try await reserve(policy, subjects, realm: realm)
        let result: R?
        let verdict: PermitVerdict
        do {
            (result, verdict) = try await statement(reservation.permits)
        } catch {
            wakeWaiters(of: reservation, answered: false)
            throw error
        }
        try settle(reservation, verdict)
        guard let result else { throw TokenError.unavailable("limit without a verdict") }
        return result
    }

    /// Counts a request that needs no other statement. - Throws: `rate_limited`, or what the database threw.
    /// - Parameter proof: used up with it.
    public func count(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm, spending proof: ProofUse? = nil
    ) async throws {
        try await admitting(policy, subjects, realm: realm) { permits in
            guard let proof, let store = self.permits else { return ((), try await verdict(on: permits, realm: realm)) }
            return ((), try await store.take(realm: realm.id, permits, spending: proof))
        }
    }

    /// Takes permits with a statement of their own, for a request whose statement did not take them.
    func verdict(on request: PermitRequest, realm: Realm) async throws(StoreError) -> PermitVerdict {
        guard !request.isEmpty, let permits else { return PermitVerdict(granted: [], refused: nil, retryAfter: 0) }
        return try await permits.take(realm: realm.id, request)
    }

    /// What is configured for a subject: of its dimension, or of the part of it that the subject may take from.
    static func limit(_ policy: RateLimit.Policy, _ subject: Subject, _ realm: Realm) -> RateLimit? {
        SourceNetwork.limit(realm.rateLimits[policy]?[subject.dimension], of: subject)?.part(subject.part)
    }

    /// How long a remembered refusal of one of the subjects still stands; `nil` when none does. Takes nothing.
    func standingRefusal(_ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm) -> TokenError.ExceededLimit? {
        let now = clock()
        for subject in SourceNetwork.counted(subjects) {
            guard let limit = Self.limit(policy, subject, realm), limit.enforced else { continue }
            let key = PermitLedger.Key(realm: realm.id, policy: policy, subject: subject)
            if let seconds = ledger.withLock({ $0.refusal(of: key, limit, now) }) {
                return Self.exceeded(key, seconds: seconds)
            }
        }
        return nil
    }

    static func exceeded(_ key: PermitLedger.Key, seconds: Double) -> TokenError.ExceededLimit {
        .init(
            policy: key.policy, dimension: key.subject.dimension,
            retryAfterSeconds: max(1, Int(seconds.rounded(.up))))
    }

    // MARK: Reserving

    /// What the database must grant to one request. Other requests wait to hear about its keys.
    private struct Reservation {
        let realmSlug: String
        let budgets: [PermitLedger.Budget]
        let permits: PermitRequest
    }

    /// Takes what this process has leased already and names what the database must still grant.
    /// - Throws: `rate_limited` while a remembered refusal is valid.
    private func reserve(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm
    ) async throws(TokenError) -> Reservation {
        let budgets = SourceNetwork.counted(subjects).compactMap { subject in
            Self.limit(policy, subject, realm).flatMap { limit in
                // What refuses nothing need not be looked at.
                subject.amount == 0 && !limit.enforced
                    ? nil
                    : PermitLedger.Budget(key: .init(realm: realm.id, policy: policy, subject: subject), limit: limit)
            }
        }
        var waits = Self.maximumWaits
        var waitedFor: PermitLedger.Key?
        while true {
            let now = clock()
            let drawn = ledger.withLock { $0.draw(budgets, waitedFor: waitedFor, patient: waits > 0, now) }
            for (budget, seconds) in drawn.exceeded {
                report(Self.exceeded(budget.key, seconds: seconds), budget, realm.slug, isNew: false)
            }
            switch drawn.result {
            case .drawn(let asking): return Self.reservation(asking, realm)
            case .refused(let budget, let seconds): throw .limited(Self.exceeded(budget.key, seconds: seconds))
            case .wait(let key):
                switch await answer(about: key) {
                case .came: waits -= 1
                // The database is away: the waiters ask at once and do not wait for one another again.
                case .failed: waits = 0
                case .alreadyAnswered:
                    waitedFor = nil
                    continue
                }
                waitedFor = key
            }
        }
    }

    private static func reservation(
        _ asking: [(budget: PermitLedger.Budget, wanted: Int)], _ realm: Realm
    ) -> Reservation {
        var permits = PermitRequest()
        for (budget, wanted) in asking {
            let limit = budget.limit
            let amount = wanted * budget.key.subject.amount
            permits.append(
                key: budget.key.subject.key(budget.key.policy), wanted: limit.enforced ? amount : -amount,
                permits: limit.permits, per: limit.per, burst: limit.burst)
        }
        return Reservation(realmSlug: realm.slug, budgets: asking.map(\.budget), permits: permits)
    }

    private enum Answer {
        case came
        case failed
        case alreadyAnswered
    }

    /// Waits until the request that asks about a key has its answer.
    private func answer(about key: PermitLedger.Key) async -> Answer {
        var alreadyAnswered = false
        let came = await withCheckedContinuation { waiter in
            alreadyAnswered = !ledger.withLock { $0.wait(for: key, waiter) }
            if alreadyAnswered { waiter.resume(returning: true) }
        }
        return alreadyAnswered ? .alreadyAnswered : came ? .came : .failed
    }

    private func wakeWaiters(of reservation: Reservation, answered: Bool) {
        for budget in reservation.budgets {
            let waiters = ledger.withLock { $0.answer(budget.key) }
            for waiter in waiters { waiter.resume(returning: answered) }
        }
    }

    // MARK: Settling

    /// Books what the database granted. - Throws: `rate_limited` when it refused one.
    private func settle(_ reservation: Reservation, _ verdict: PermitVerdict) throws(TokenError) {
        guard !reservation.budgets.isEmpty else { return }
        let now = clock()
        var exceeded: [(budget: PermitLedger.Budget, seconds: Double)] = []
        ledger.withLock { ledger in
            for (index, budget) in reservation.budgets.enumerated() {
                guard index < verdict.granted.count else { break }
                let limit = budget.limit
                if verdict.granted[index] > 0 {
                    // Of a request that takes several, the last one before a refusal may have got fewer.
                    let amount = max(1, budget.key.subject.amount)
                    ledger.granted(max(1, Int(verdict.granted[index]) / amount), budget.key, limit, now)
                    continue
                }
                guard index == verdict.refused || !limit.enforced else { continue }
                // In mode log-only the database returns no retry time; it is estimated from the rate.
                let wait = index == verdict.refused ? verdict.retryAfter : limit.per / Double(max(limit.permits, 1))
                let seconds = min(max(wait, 0.001), 86_400)
                ledger.refused(for: seconds, budget.key, limit, now)
                exceeded.append((budget, seconds))
            }
        }
        wakeWaiters(of: reservation, answered: true)
        var refusal: TokenError.ExceededLimit?
        for (budget, seconds) in exceeded {
            let limit = Self.exceeded(budget.key, seconds: seconds)
            report(limit, budget, reservation.realmSlug, isNew: true)
            if budget.limit.enforced { refusal = limit }
        }
        if let refusal { throw .limited(refusal) }
    }

    private func report(
        _ limit: TokenError.ExceededLimit, _ budget: PermitLedger.Budget, _ realm: String, isNew: Bool
    ) {
        let subject = budget.key.subject
        let value: String? =
            switch subject.dimension {
            case .source, .client, .app, .country: subject.value
            case .target, .targetTotal, .failures, .registrations, .wrongCodes, .prefix, .spend: nil
            }
        observe(Excess(realm: realm, limit: limit, subject: value, enforced: budget.limit.enforced, isNew: isNew))
    }
}
