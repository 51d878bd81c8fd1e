public import Persistence

/// The permits of one request: taken with the first of its statements, however many follow.
public struct Admission {
    private let limiter: RateLimiter
    private let policy: RateLimit.Policy
    private let subjects: [RateLimiter.Subject]
    private let realm: Realm
    private var isAdmitted = false

    /// Nothing is taken yet.
    public init(_ limiter: RateLimiter, _ policy: RateLimit.Policy, _ subjects: [RateLimiter.Subject], realm: Realm) {
        self.limiter = limiter
        self.policy = policy
        self.subjects = subjects
        self.realm = realm
    }

    /// As ``RateLimiter/admitting(_:_:realm:_:)``. Once that succeeded, a statement asks for no permits.
    public mutating func admitting<R>(
        _ statement: (PermitRequest) async throws -> (R?, PermitVerdict)
    ) async throws -> R {
        guard isAdmitted else {
            let result = try await limiter.admitting(policy, subjects, realm: realm, statement)
            isAdmitted = true
            return result
        }
        guard let result = try await statement(PermitRequest()).0 else {
            throw TokenError.unavailable("limit without a verdict")
        }
        return result
    }

    /// Takes the permits of a request that is refused before any statement.
    /// - Parameter proof: used up with it.
    public func count(spending proof: ProofUse? = nil) async throws {
        try await limiter.count(policy, subjects, realm: realm, spending: proof)
    }
}
