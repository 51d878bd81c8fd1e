public import Persistence
import Synchronization

/// Decides limits together with the database, without an extra round trip (contract §4.5).
///
/// PostgreSQL holds the truth: one GCRA row per key. So that a thousand users behind one address do not queue for one row lock,
/// this process leases permits of the broad dimensions in small blocks; a block is part of the same exact budget, so no number of
/// nodes ever passes more than the limit. A refusal is remembered until its `Retry-After`, so a flood never reaches the database.
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
        let subjects: [Subject]
        /// The parallel arrays the statement takes.
        public let permits: PermitRequest
    }

    private struct Key: Hashable {
        let realm: UUIDValue
        let policy: RateLimit.Policy
        let subject: Subject
    }

    private struct Entry {
        var leased = 0
        var leasedUntil: ContinuousClock.Instant
        var refusedUntil: ContinuousClock.Instant?
        /// A changed limit must count soon, so a refusal is asked for again before it ends.
        var recheckAt: ContinuousClock.Instant?
    }

    private let entries = Mutex<[Key: Entry]>([:])
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// Keys remembered at once; beyond it the memory starts anew, which costs a lease, never an extra permit.
    private static let maximumEntries = 100_000
    /// A lease not used within this time is forfeited, so a hoard never adds to a later burst.
    private static let leaseLifetime = Duration.seconds(2)
    /// How long a refusal is believed without asking the database.
    private static let refusalMemory = 2.0

    /// - Parameter clock: the monotonic clock; injected by tests.
    public init(clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.clock = clock
    }

    /// Takes what this process has leased already and names what the database must still grant.
    /// - Throws: `rate_limited` when a remembered refusal still stands.
    public func claim(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm
    ) throws(TokenError) -> Claim {
        let now = clock()
        var open: [Subject] = []
        var permits = PermitRequest()
        var refusal: TokenError.ExceededLimit?
        entries.withLock { entries in
            for subject in subjects {
                guard let limit = realm.rateLimits[policy]?[subject.dimension], limit.enforced else { continue }
                let key = Key(realm: realm.id, policy: policy, subject: subject)
                if var entry = entries[key] {
                    if let until = entry.refusedUntil, until > now, let recheck = entry.recheckAt, recheck > now {
                        refusal = Self.exceeded(policy, subject, seconds: now.duration(to: until) / .seconds(1))
                        return
                    }
                    if entry.leased > 0, entry.leasedUntil > now {
                        entry.leased -= 1
                        entries[key] = entry
                        continue
                    }
                    entry.leased = 0
                    entries[key] = entry
                }
                open.append(subject)
                permits.append(
                    key: "\(policy.rawValue)|\(subject.dimension.rawValue)|\(subject.value)",
                    wanted: Self.block(limit, subject.dimension), permits: limit.permits, per: limit.per, burst: limit.burst)
            }
        }
        if let refusal { throw .limited(refusal) }
        return Claim(realm: realm.id, policy: policy, subjects: open, permits: permits)
    }

    /// Books what the database granted. - Throws: `rate_limited` when it refused one.
    public func settle(_ claim: Claim, _ verdict: PermitVerdict) throws(TokenError) {
        guard !claim.subjects.isEmpty else { return }
        let now = clock()
        var refusal: TokenError.ExceededLimit?
        entries.withLock { entries in
            if entries.count > Self.maximumEntries { entries.removeAll(keepingCapacity: true) }
            for (index, subject) in claim.subjects.enumerated() {
                let key = Key(realm: claim.realm, policy: claim.policy, subject: subject)
                if index < verdict.granted.count, verdict.granted[index] > 0 {
                    let spare = Int(verdict.granted[index]) - 1
                    guard spare > 0 else { continue }
                    entries[key, default: Entry(leasedUntil: now)].leased += spare
                    entries[key]?.leasedUntil = now + Self.leaseLifetime
                } else if index == verdict.refused {
                    let seconds = min(max(verdict.retryAfter, 0.001), 86_400)
                    entries[key, default: Entry(leasedUntil: now)].refusedUntil = now + .seconds(seconds)
                    entries[key]?.recheckAt = now + .seconds(min(seconds, Self.refusalMemory))
                    refusal = Self.exceeded(claim.policy, subject, seconds: seconds)
                }
            }
        }
        if let refusal { throw .limited(refusal) }
    }

    /// Narrow dimensions are asked for one by one; broad ones in blocks of a sixty-fourth of the burst.
    private static func block(_ limit: RateLimit, _ dimension: RateLimit.Dimension) -> Int {
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
