import Persistence
import Synchronization

extension RateLimiter {
    /// Counts something that has happened already. - Throws: `rate_limited`, or `temporarily_unavailable`.
    public func count(
        _ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm
    ) async throws(TokenError) {
        try await take(try await claim(policy, subjects, realm: realm))
    }

    /// How long a remembered refusal of one of the subjects remains valid, in whole seconds; `nil` for none. Takes no
    /// permit.
    func standingRefusal(_ policy: RateLimit.Policy, _ subjects: [Subject], realm: Realm) -> TokenError.ExceededLimit? {
        let now = clock()
        for subject in SourceNetwork.counted(subjects) {
            guard let limit = Self.limit(policy, subject, realm), limit.enforced else { continue }
            let key = PermitLedger.Key(realm: realm.id, policy: policy, subject: subject)
            if let seconds = ledger.withLock({ $0.refusal(of: key, limit, now) }) {
                return Self.exceeded(policy, subject, seconds: seconds)
            }
        }
        return nil
    }
}
