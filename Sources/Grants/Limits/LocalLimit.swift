import Persistence
import Synchronization

/// Limits requests that write nothing, or nothing before somebody signed in: counted in this process alone, so that
/// they cost no statement.
///
/// GCRA as in the database. A process that forgets its counts, because it restarts or has too many sources, admits
/// more; nothing else depends on them.
public final class LocalLimit: Sendable {
    private struct Key: Hashable {
        let realm: UUIDValue
        let policy: RateLimit.Policy
        let subject: RateLimiter.Subject
    }

    /// When each budget is whole again.
    private let whole = Mutex<[Key: ContinuousClock.Instant]>([:])
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let observe: @Sendable (TokenError.ExceededLimit, Bool) -> Void
    /// The most sources remembered; beyond it those whose budget is whole are forgotten, and then all.
    private static let maximumEntries = 50_000

    /// - Parameter observe: told of every excess, and whether the request was refused.
    public init(
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now },
        observe: @escaping @Sendable (TokenError.ExceededLimit, Bool) -> Void = { _, _ in }
    ) {
        self.clock = clock
        self.observe = observe
    }

    /// Takes a permit of a source. - Throws: `rate_limited`.
    public func count(_ policy: RateLimit.Policy, _ source: String, realm: Realm) throws(TokenError) {
        try count(policy, .init(.source, source), realm: realm)
    }

    /// Takes a permit of a subject. - Throws: `rate_limited`.
    public func count(_ policy: RateLimit.Policy, _ subject: RateLimiter.Subject, realm: Realm) throws(TokenError) {
        guard let seconds = refusal(policy, subject, realm: realm) else { return }
        throw .limited(.init(policy: policy, dimension: subject.dimension, retryAfterSeconds: seconds))
    }

    /// Takes a permit of a source. - Returns: seconds until there is one, when there is none; `nil` admits the request.
    public func refusal(_ policy: RateLimit.Policy, _ source: String, realm: Realm) -> Int? {
        refusal(policy, .init(.source, source), realm: realm)
    }

    private func refusal(_ policy: RateLimit.Policy, _ subject: RateLimiter.Subject, realm: Realm) -> Int? {
        let now = clock()
        let dimension = subject.dimension
        var wait = 0.0
        for subject in SourceNetwork.counted([subject]) {
            guard let limit = SourceNetwork.limit(realm.rateLimits[policy]?[dimension], of: subject) else { continue }
            let key = Key(realm: realm.id, policy: policy, subject: subject)
            let seconds = take(key, limit, now)
            if seconds > 0 {
                observe(
                    .init(policy: policy, dimension: dimension, retryAfterSeconds: Int(seconds.rounded(.up))),
                    limit.enforced)
                if limit.enforced { wait = max(wait, seconds) }
            }
        }
        return wait > 0 ? max(1, Int(wait.rounded(.up))) : nil
    }

    private func take(_ key: Key, _ limit: RateLimit, _ now: ContinuousClock.Instant) -> Double {
        let step = Duration.seconds(limit.per / Double(limit.permits))
        return whole.withLock { whole in
            let known = whole[key]
            let next = max(known ?? now, now) + step
            let excess = (next - (now + step * limit.burst)) / .seconds(1)
            guard excess <= 1e-9 else { return excess }
            if known == nil, whole.count >= Self.maximumEntries {
                whole = whole.filter { $0.value > now }
                if whole.count >= Self.maximumEntries { whole.removeAll(keepingCapacity: true) }
            }
            whole[key] = next
            return 0
        }
    }
}
