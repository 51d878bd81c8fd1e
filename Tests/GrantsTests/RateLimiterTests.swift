@testable import Grants
import Persistence
import Synchronization
import Testing

@Suite("Rate limiter leases")
struct RateLimiterTests {
    private let now = TestClock()

    private func realm(_ limit: RateLimit, _ dimension: RateLimit.Dimension) throws -> Realm {
        try Realm.fixture(rateLimits: [.token: [dimension: limit]])
    }

    @Test func `a narrow dimension asks the database every time`() throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        for _ in 0..<3 {
            let claim = try limiter.claim(.token, [.init(.target, "a")], realm: realm)
            #expect(claim.permits.isEmpty == false)
            try limiter.settle(claim, PermitVerdict(granted: [1], refused: nil, retryAfter: 0))
        }
    }

    @Test func `a leased block is used up before the database is asked again`() throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 640, per: 60, burst: 640, enforced: true), .source)
        let first = try limiter.claim(.token, [.init(.source, "a")], realm: realm)
        try limiter.settle(first, PermitVerdict(granted: [10], refused: nil, retryAfter: 0))
        for _ in 0..<9 {
            #expect(try limiter.claim(.token, [.init(.source, "a")], realm: realm).permits.isEmpty)
        }
        #expect(try limiter.claim(.token, [.init(.source, "a")], realm: realm).permits.isEmpty == false)
    }

    @Test func `a lease is forfeited after two seconds`() throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 640, per: 60, burst: 640, enforced: true), .source)
        let first = try limiter.claim(.token, [.init(.source, "a")], realm: realm)
        try limiter.settle(first, PermitVerdict(granted: [10], refused: nil, retryAfter: 0))
        now.advance(.milliseconds(2001))
        #expect(try limiter.claim(.token, [.init(.source, "a")], realm: realm).permits.isEmpty == false)
    }

    @Test func `a refusal is remembered for two seconds and no longer`() throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        let claim = try limiter.claim(.token, [.init(.target, "a")], realm: realm)
        let expected = TokenError.ExceededLimit(policy: .token, dimension: .target, retryAfterSeconds: 12)
        #expect(throws: TokenError.limited(expected)) {
            try limiter.settle(claim, PermitVerdict(granted: [0], refused: 0, retryAfter: 11.5))
        }
        #expect(throws: TokenError.limited(expected)) { try limiter.claim(.token, [.init(.target, "a")], realm: realm) }
        #expect(try limiter.claim(.token, [.init(.target, "b")], realm: realm).permits.isEmpty == false)
        now.advance(.milliseconds(2001))
        #expect(try limiter.claim(.token, [.init(.target, "a")], realm: realm).permits.isEmpty == false)
    }

    @Test func `a log-only limit asks for nothing`() throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 1, per: 60, burst: 1, enforced: false), .source)
        #expect(try limiter.claim(.token, [.init(.source, "a")], realm: realm).permits.isEmpty)
    }
}

/// A monotonic clock that moves when told to.
final class TestClock: Sendable {
    private let instant = Mutex(ContinuousClock.now)

    var read: @Sendable () -> ContinuousClock.Instant {
        { self.instant.withLock { $0 } }
    }

    func advance(_ duration: Duration) {
        instant.withLock { $0 += duration }
    }
}
