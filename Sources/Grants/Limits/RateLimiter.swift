public import Persistence
import Synchronization

/// Decides limits together with the database, without an extra round trip (contract §4.5).
///
/// PostgreSQL holds the truth: one GCRA row per key. So that a thousand users behind one address do not queue for one row lock,
/// this process leases permits of the broad dimensions in blocks: one at first, twice as many each time a block was used up in
/// its time. A block is part of the same exact budget, so no number of nodes ever passes more than the limit, and a lone request
/// never costs more than its own permit. A refusal is remembered for a moment, so a flood hardly reaches the database.
public final class RateLimiter: Sendable {
    /// One thing to count: a dimension and whose budget it is.
    public struct Subject: Sendable, Hashable {
        let dimension: RateLimit.Dimension
        let value: String

        /// Counts `value` (an address, a client key …) under `dimension`.
        public init(_ dimension: RateLimit.Dimension, _ value: String) {
            self.dimension = dimension
            self.value = value
        }
    }

    /// What a request must ask the database for, to be handed to the statement and then to ``settle(_:_:)``.
    public struct Claim: Sendable {
        let realm: UUIDValue
        let policy: RateLimit.Policy
        let subjects: [(subject: Subject, limit: RateLimit)]
        /// The parallel arrays the statement takes.
        public let permits: PermitRequest
    }

    private struct Key: Hashable {
        let realm: UUIDValue
        let policy: RateLimit.Policy
        let subject: Subject
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
        var recheckAt: ContinuousClock.Instant?
    }

    private let entries = Mutex<[Key: Entry]>([:])
    private let permits: PermitStore?
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// Keys remembered at once; beyond it the memory starts anew, which costs a lease, never an extra permit.
    private static let maximumEntries = 100_000
    /// A lease not used within this time is forfeited, so a hoard never adds to a later burst.
    private static let leaseLifetime = Duration.seconds(2)
    /// How long a refusal is believed without asking the database.
    private static let refusalMemory = 0.9

    /// - Parameters:
    ///   - permits: for requests that need no other statement; without it those are not counted.
    ///   - clock: the monotonic clock; injected by tests.
    public init(
        permits: PermitStore?, clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.permits = permits
        self.clock = clock
    }

    /// Takes what this process has leased already and names what the database must still grant.
    /// - Throws: `rate_limited` when a remembered refusal still stands.
    public func claim(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm
    ) throws(TokenError) -> Claim {
        let now = clock()
        var open: [(Subject, RateLimit)] = []
        var permits = PermitRequest()
        var refusal: TokenError.ExceededLimit?
        entries.withLock { entries in
            for subject in subjects {
                guard let limit = realm.rateLimits[policy]?[subject.dimension], limit.enforced else { continue }
                let key = Key(realm: realm.id, policy: policy, subject: subject)
                var wanted = 1
                if var entry = entries[key], entry.limit == limit {
                    if let until = entry.refusedUntil, until > now, let recheck = entry.recheckAt, recheck > now {
                        refusal = Self.exceeded(policy, subject, seconds: now.duration(to: until) / .seconds(1))
                        return
                    }
                    if entry.leased > 0, entry.leasedUntil > now {
                        entry.leased -= 1
                        entries[key] = entry
                        continue
                    }
                    // Used up in time: twice as many; lapsed: back to one.
                    entry.block =
                        entry.leasedUntil > now ? min(entry.block * 2, Self.maximumBlock(limit, subject.dimension)) : 1
                    entry.leased = 0
                    entries[key] = entry
                    wanted = entry.block
                }
                open.append((subject, limit))
                permits.append(
                    key: "\(policy.rawValue)|\(subject.dimension.rawValue)|\(subject.value)",
                    wanted: wanted, permits: limit.permits, per: limit.per, burst: limit.burst)
            }
        }
        if let refusal { throw .limited(refusal) }
        return Claim(realm: realm.id, policy: policy, subjects: open, permits: permits)
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
        var refusal: TokenError.ExceededLimit?
        entries.withLock { entries in
            if entries.count > Self.maximumEntries { entries.removeAll(keepingCapacity: true) }
            for (index, (subject, limit)) in claim.subjects.enumerated() {
                let key = Key(realm: claim.realm, policy: claim.policy, subject: subject)
                if let entry = entries[key], entry.limit != limit { entries[key] = nil }
                if index < verdict.granted.count, verdict.granted[index] > 0 {
                    guard Self.maximumBlock(limit, subject.dimension) > 1 else { continue }
                    entries[key, default: Entry(limit: limit, leasedUntil: now)].leased +=
                        Int(verdict.granted[index]) - 1
                    entries[key]?.leasedUntil = now + Self.leaseLifetime
                    entries[key]?.refusedUntil = nil
                } else if index == verdict.refused {
                    let seconds = min(max(verdict.retryAfter, 0.001), 86_400)
                    entries[key, default: Entry(limit: limit, leasedUntil: now)].refusedUntil = now + .seconds(seconds)
                    entries[key]?.recheckAt = now + .seconds(min(seconds, Self.refusalMemory))
                    refusal = Self.exceeded(claim.policy, subject, seconds: seconds)
                }
            }
        }
        if let refusal { throw .limited(refusal) }
    }

    /// Narrow dimensions are asked for one by one; broad ones in blocks of at most a sixty-fourth of the burst.
    private static func maximumBlock(_ limit: RateLimit, _ dimension: RateLimit.Dimension) -> Int {
        switch dimension {
        case .target, .targetTotal, .failures: 1
        case .source, .client, .app: max(1, min(limit.burst / 64, 4096))
        }
    }

    private static func exceeded(
        _ policy: RateLimit.Policy, _ subject: Subject, seconds: Double
    ) -> TokenError.ExceededLimit {
        .init(policy: policy, dimension: subject.dimension, retryAfterSeconds: max(1, Int(seconds.rounded(.up))))
    }
}
