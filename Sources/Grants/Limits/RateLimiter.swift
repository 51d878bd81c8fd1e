public import Persistence
import Synchronization

/// Applies rate limits together with the database, without an extra round trip (docs/decisions/0004).
///
/// PostgreSQL is the authority: one GCRA row per key. To keep a thousand users behind one address from queueing for one
/// row lock, this process leases permits of the broad dimensions in blocks: one permit at first, twice as many each
/// time a block was used up before its lease ended. A block is part of the same exact budget, so all nodes together
/// never pass more than the limit, and a lone request costs exactly its own permit. A refusal is remembered until a
/// permit could be available. About once a second one of the refused requests asks the database again; the others do
/// not reach it.
///
/// Per key, one request of this process asks the database at a time. Others wait for its answer, and the next one asks
/// for as many permits as there are waiters. So a flood on one key occupies one connection of the pool.
public final class RateLimiter: Sendable {
    /// One budget to count against: a dimension and the value (an address, a client …) it belongs to.
    public struct Subject: Sendable, Hashable {
        let dimension: RateLimit.Dimension
        let value: String
        let part: RateLimit.Part

        /// Counts `value` (an address, a client key …) under `dimension`.
        public init(_ dimension: RateLimit.Dimension, _ value: String) {
            self.init(dimension, value, part: .whole)
        }

        /// Counts `value` under a part of the budget of `dimension`.
        init(_ dimension: RateLimit.Dimension, _ value: String, part: RateLimit.Part) {
            self.dimension = dimension
            self.value = value
            self.part = part
        }

        /// The key of the budget in the database.
        func key(_ policy: RateLimit.Policy) -> String {
            "\(policy.rawValue)|\(dimension.rawValue)|\(part == .reserve ? "reserve|" : "")\(value)"
        }
    }

    /// What a request must ask the database for, to be handed to the statement and then to ``settle(_:_:)``.
    public struct Claim: Sendable {
        let realm: UUIDValue
        let realmSlug: String
        let policy: RateLimit.Policy
        let subjects: [(subject: Subject, limit: RateLimit)]
        /// The parallel arrays the statement takes.
        public let permits: PermitRequest
        /// Resumes the waiting requests if this claim is dropped without an answer.
        fileprivate let question: Question?
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

    /// How often a request waits for others before it asks on its own.
    private static let patience = 8

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

    /// Takes what this process has leased already and names what the database must still grant.
    /// - Throws: `rate_limited` while a remembered refusal is valid.
    public func claim(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm
    ) async throws(TokenError) -> Claim {
        let subjects = SourceNetwork.counted(subjects)
        var patience = Self.patience
        var waitedFor: PermitLedger.Key?
        while true {
            let attempt = attempt(policy, subjects, realm: realm, waitedFor: waitedFor, patient: patience > 0)
            for excess in attempt.excesses { observe(excess) }
            switch attempt.result {
            case .claimed(let claim): return claim
            case .refused(let limit): throw .limited(limit)
            case .busy(let key):
                // After a failed request no waiter waits again: an unavailable database would otherwise be asked one by
                // one.
                switch await answer(about: key) {
                case .came: patience -= 1
                case .failed: patience = 0
                case .nobodyAsks:
                    waitedFor = nil
                    continue
                }
                waitedFor = key
            }
        }
    }

    private enum Result {
        case claimed(Claim)
        case refused(TokenError.ExceededLimit)
        case busy(PermitLedger.Key)
    }

    /// Draws all permits of a request, or none.
    private func attempt(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm, waitedFor: PermitLedger.Key?, patient: Bool
    ) -> (result: Result, excesses: [Excess]) {
        let now = clock()
        var open: [(Subject, RateLimit)] = []
        var permits = PermitRequest()
        var excesses: [Excess] = []
        var end: Result?
        ledger.withLock { ledger in
            let waiting = waitedFor.map { ledger.returned(to: $0) } ?? 1
            var leased: UInt64 = 0  // which subjects, by their place
            for (index, subject) in subjects.enumerated() {
                guard let limit = Self.limit(policy, subject, realm) else { continue }
                let key = PermitLedger.Key(realm: realm.id, policy: policy, subject: subject)
                switch ledger.draw(key, limit, demand: key == waitedFor ? waiting : 1, patient: patient, now) {
                case .leased:
                    leased |= 1 << UInt64(index)
                    continue
                case .ask(let wanted):
                    open.append((subject, limit))
                    permits.append(
                        key: subject.key(policy), wanted: limit.enforced ? wanted : -wanted, permits: limit.permits,
                        per: limit.per, burst: limit.burst)
                    continue
                case .refused(let seconds):
                    let exceeded = Self.exceeded(policy, subject, seconds: seconds)
                    excesses.append(Self.excess(realm.slug, exceeded, subject, limit, isNew: false))
                    guard limit.enforced else { continue }
                    end = .refused(exceeded)
                case .wait:
                    end = .busy(key)
                }
                // Give back the permits drawn for this request, so that the next one can use them.
                for (place, subject) in subjects[..<index].enumerated() where leased & 1 << UInt64(place) != 0 {
                    ledger.giveBack(PermitLedger.Key(realm: realm.id, policy: policy, subject: subject))
                }
                for (subject, _) in open {
                    _ = ledger.answer(PermitLedger.Key(realm: realm.id, policy: policy, subject: subject))
                }
                return
            }
        }
        if case .busy = end { excesses = [] }
        let question =
            open.isEmpty || end != nil
            ? nil
            : Question(
                of: self, about: open.map { PermitLedger.Key(realm: realm.id, policy: policy, subject: $0.0) })
        let claim = Claim(
            realm: realm.id, realmSlug: realm.slug, policy: policy, subjects: open, permits: permits, question: question
        )
        return (end ?? .claimed(claim), excesses)
    }

    /// What is configured for a subject: of its dimension, or of the part of it that the subject may take from.
    static func limit(_ policy: RateLimit.Policy, _ subject: Subject, _ realm: Realm) -> RateLimit? {
        SourceNetwork.limit(realm.rateLimits[policy]?[subject.dimension], of: subject)?.part(subject.part)
    }

    private enum Answer {
        case came
        case failed
        case nobodyAsks
    }

    /// Waits until another request's question about a key is answered.
    private func answer(about key: PermitLedger.Key) async -> Answer {
        var nobodyAsks = false
        let came = await withCheckedContinuation { waiter in
            nobodyAsks = !ledger.withLock { $0.wait(for: key, waiter) }
            if nobodyAsks { waiter.resume(returning: true) }
        }
        return nobodyAsks ? .nobodyAsks : came ? .came : .failed
    }

    fileprivate func answered(_ keys: [PermitLedger.Key], failed: Bool) {
        for key in keys {
            let waiters = ledger.withLock { $0.answer(key) }
            for waiter in waiters { waiter.resume(returning: !failed) }
        }
    }

    /// Takes a claim on its own, for a request that ends before the statement that would have taken it.
    /// - Throws: `rate_limited`, or `temporarily_unavailable`.
    public func take(_ claim: Claim) async throws(TokenError) {
        guard !claim.subjects.isEmpty, let permits else { return }
        do {
            try settle(claim, try await permits.take(realm: claim.realm, claim.permits))
        } catch let error as TokenError {
            throw error
        } catch {
            throw .unavailable("\(error)")
        }
    }

    /// Books what the database granted. - Throws: `rate_limited` when it refused one.
    public func settle(_ claim: Claim, _ verdict: PermitVerdict) throws(TokenError) {
        guard !claim.subjects.isEmpty else { return }
        let now = clock()
        var excesses: [Excess] = []
        var refusal: TokenError.ExceededLimit?
        ledger.withLock { ledger in
            for (index, (subject, limit)) in claim.subjects.enumerated() {
                let key = PermitLedger.Key(realm: claim.realm, policy: claim.policy, subject: subject)
                guard index < verdict.granted.count else { break }
                if verdict.granted[index] > 0 {
                    ledger.granted(Int(verdict.granted[index]), key, limit, now)
                    continue
                }
                guard index == verdict.refused || !limit.enforced else { continue }
                // In log-only mode the database returns no retry time; estimate it from the rate.
                let wait = index == verdict.refused ? verdict.retryAfter : limit.per / Double(max(limit.permits, 1))
                let seconds = min(max(wait, 0.001), 86_400)
                ledger.refused(for: seconds, key, limit, now)
                let exceeded = Self.exceeded(claim.policy, subject, seconds: seconds)
                excesses.append(Self.excess(claim.realmSlug, exceeded, subject, limit, isNew: true))
                if limit.enforced { refusal = exceeded }
            }
        }
        claim.question?.answered()
        for excess in excesses { observe(excess) }
        if let refusal { throw .limited(refusal) }
    }

    static func exceeded(
        _ policy: RateLimit.Policy, _ subject: Subject, seconds: Double
    ) -> TokenError.ExceededLimit {
        .init(policy: policy, dimension: subject.dimension, retryAfterSeconds: max(1, Int(seconds.rounded(.up))))
    }

    private static func excess(
        _ realm: String, _ exceeded: TokenError.ExceededLimit, _ subject: Subject, _ limit: RateLimit, isNew: Bool
    ) -> Excess {
        let value: String? =
            switch subject.dimension {
            case .source, .client, .app: subject.value
            case .target, .targetTotal, .failures, .registrations, .wrongCodes: nil
            }
        return Excess(realm: realm, limit: exceeded, subject: value, enforced: limit.enforced, isNew: isNew)
    }
}

/// The database request of a claim, in flight. If it is released without an answer, its waiters are resumed as failed.
private final class Question: Sendable {
    private let limiter: RateLimiter
    private let keys: [PermitLedger.Key]
    private let isAnswered = Atomic(false)

    init(of limiter: RateLimiter, about keys: [PermitLedger.Key]) {
        self.limiter = limiter
        self.keys = keys
    }

    deinit {
        if !isAnswered.load(ordering: .relaxed) { limiter.answered(keys, failed: true) }
    }

    func answered() {
        guard !isAnswered.exchange(true, ordering: .relaxed) else { return }
        limiter.answered(keys, failed: false)
    }
}
