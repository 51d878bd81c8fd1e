@testable import Grants
@testable import Persistence
import Synchronization
import TestSupport
import Testing

@Suite("Rate limiter leases")
struct RateLimiterTests {
    private let now = TestClock()

    private func realm(_ limit: RateLimit, _ dimension: RateLimit.Dimension) throws -> Realm {
        try Realm.fixture(rateLimits: [.token: [dimension: limit]])
    }

    @Test func `a narrow dimension asks the database every time`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        for _ in 0..<3 {
            let asked = try await limiter.asks([.init(.target, "a")], realm, granted: [1])
            #expect(asked.isEmpty == false)
        }
    }

    @Test func `a leased block is used up before the database is asked again`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 640, per: 60, burst: 640, enforced: true), .source)
        _ = try await limiter.asks([.init(.source, "a")], realm, granted: [10])
        for _ in 0..<9 {
            #expect(try await limiter.asks([.init(.source, "a")], realm).isEmpty)
        }
        #expect(try await limiter.asks([.init(.source, "a")], realm).isEmpty == false)
    }

    @Test func `a lease is forfeited after two seconds`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 640, per: 60, burst: 640, enforced: true), .source)
        _ = try await limiter.asks([.init(.source, "a")], realm, granted: [10])
        now.advance(.milliseconds(2001))
        #expect(try await limiter.asks([.init(.source, "a")], realm).isEmpty == false)
    }

    @Test func `a refusal is remembered, and one request in a second asks whether it still stands`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        let expected = TokenError.ExceededLimit(policy: .token, dimension: .target, retryAfterSeconds: 12)
        await #expect(throws: TokenError.limited(expected)) {
            try await limiter.admitting(.token, [.init(.target, "a")], realm: realm) { _ in
                ((), PermitVerdict(granted: [0], refused: 0, retryAfter: 11.5))
            }
        }
        await #expect(throws: TokenError.limited(expected)) {
            try await limiter.asks([.init(.target, "a")], realm)
        }
        #expect(try await limiter.asks([.init(.target, "b")], realm).isEmpty == false)
        now.advance(.milliseconds(901))
        try await limiter.admitting(.token, [.init(.target, "a")], realm: realm) { permits in
            #expect(permits.isEmpty == false)
            for _ in 0..<1000 {
                await #expect(throws: TokenError.self) {
                    try await limiter.asks([.init(.target, "a")], realm)
                }
            }
            return ((), PermitVerdict(granted: [1], refused: nil, retryAfter: 0))
        }
        #expect(try await limiter.asks([.init(.target, "a")], realm).isEmpty == false)
    }

    @Test func `a refusal ends when a permit could be there`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 1, burst: 5, enforced: true), .target)
        try await refuse(limiter, [.init(.target, "a")], realm, retryAfter: 0.2)
        now.advance(.milliseconds(201))
        for _ in 0..<3 {
            #expect(try await limiter.asks([.init(.target, "a")], realm).isEmpty == false)
        }
    }

    @Test func `another limit voids what was remembered at once`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        try await refuse(limiter, [.init(.target, "a")], realm, retryAfter: 30)
        let changed = realm.changed {
            $0.rateLimits = [.token: [.target: RateLimit(permits: 50, per: 60, burst: 50, enforced: true)]]
        }
        #expect(try await limiter.asks([.init(.target, "a")], changed).isEmpty == false)
    }

    @Test func `a leased permit goes back when another limit refuses the request`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let broad = RateLimit(permits: 640, per: 60, burst: 640, enforced: true)
        let narrow = RateLimit(permits: 5, per: 60, burst: 5, enforced: true)
        let realm = try Realm.fixture(rateLimits: [.token: [.source: broad, .target: narrow]])
        _ = try await limiter.asks([.init(.source, "s")], realm, granted: [3])
        try await refuse(limiter, [.init(.target, "a")], realm, retryAfter: 30)
        for _ in 0..<10 {
            await #expect(throws: TokenError.self) {
                try await limiter.asks([.init(.source, "s"), .init(.target, "a")], realm)
            }
        }
        for _ in 0..<2 { #expect(try await limiter.asks([.init(.source, "s")], realm).isEmpty) }
        #expect(try await limiter.asks([.init(.source, "s")], realm).isEmpty == false)
    }

    @Test func `a log-only limit is counted and reported and refuses nothing`() async throws {
        let excesses = Mutex<[RateLimiter.Excess]>([])
        let limiter = RateLimiter(
            permits: nil, clock: now.read, observe: { excess in excesses.withLock { $0.append(excess) } })
        let realm = try realm(RateLimit(permits: 1, per: 60, burst: 1, enforced: false), .source)
        #expect(try await limiter.asks([.init(.source, "a")], realm, granted: [1]).wanted == [-1])
        _ = try await limiter.asks([.init(.source, "a")], realm, granted: [0])
        // In a flood the database is not asked again for each.
        #expect(try await limiter.asks([.init(.source, "a")], realm).isEmpty)
        let seen = excesses.withLock { $0 }
        #expect(seen.map(\.isNew) == [true, false])
        #expect(seen.allSatisfy { !$0.enforced && $0.subject == "a" && $0.limit.dimension == .source })
    }

    @Test func `what is remembered is bounded however many addresses there are`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 1000, per: 60, burst: 1000, enforced: true), .source)
        for number in 0..<250_000 {
            _ = try await limiter.asks([.init(.source, "203.0.113.\(number)")], realm, granted: [1])
            if number % 1000 == 0 { await Task.yield() }
        }
        #expect(limiter.rememberedKeys <= PermitLedger.maximumEntries)
    }

    @Test func `about one key one request asks at a time, and the next one asks for all who waited`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        let bucket = Bucket(permits: 5)
        let passed = try await withThrowingTaskGroup(of: Bool.self) { group in
            try await limiter.admitting(.token, [.init(.target, "a")], realm: realm) { permits in
                for _ in 0..<99 {
                    group.addTask {
                        do {
                            try await limiter.admitting(.token, [.init(.target, "a")], realm: realm) {
                                ((), bucket.take($0))
                            }
                            return true
                        } catch is TokenError {
                            return false
                        }
                    }
                }
                try await eventually { limiter.waitingRequests == 99 }
                return ((), bucket.take(permits))
            }
            return try await group.reduce(into: 1) { $0 += $1 ? 1 : 0 }
        }
        #expect(passed == 5)
        // The first, one for as many of the 99 as there can be permits, and one to learn that there is nothing left.
        #expect(bucket.questions.prefix(2) == [1, 5] && bucket.questions.count == 3)
    }

    @Test func `requests that wait for an answer that never comes ask on their own`() async throws {
        let limiter = RateLimiter(permits: nil, clock: now.read)
        let realm = try realm(RateLimit(permits: 5, per: 60, burst: 5, enforced: true), .target)
        struct Lost: Error {}
        let waiting = Mutex<[Task<PermitRequest, any Error>]>([])
        await #expect(throws: Lost.self) {
            try await limiter.admitting(.token, [.init(.target, "a")], realm: realm) {
                (_) async throws -> (Void?, PermitVerdict) in
                waiting.withLock { tasks in
                    tasks = (0..<2).map { _ in Task { try await limiter.asks([.init(.target, "a")], realm) } }
                }
                try await eventually { limiter.waitingRequests == 2 }
                throw Lost()
            }
        }
        for task in waiting.withLock({ $0 }) {
            #expect(try await task.value.isEmpty == false)
        }
    }

    private func refuse(
        _ limiter: RateLimiter, _ subjects: [RateLimiter.Subject], _ realm: Realm, retryAfter: Double
    ) async throws {
        await #expect(throws: TokenError.self) {
            try await limiter.admitting(.token, subjects, realm: realm) { _ in
                ((), PermitVerdict(granted: [0], refused: 0, retryAfter: retryAfter))
            }
        }
    }
}

extension RateLimiter {
    /// What the database is asked for by a request of the policy `token`.
    /// - Parameter granted: what it grants; `nil`: the statement fails, so that no permit counts as taken.
    @discardableResult
    fileprivate func asks(_ subjects: [Subject], _ realm: Realm, granted: [Int32]? = nil) async throws -> PermitRequest
    {
        struct Failed: Error {}
        var asked = PermitRequest()
        do {
            try await admitting(.token, subjects, realm: realm) { permits in
                asked = permits
                guard let granted else { throw Failed() }
                return ((), PermitVerdict(granted: granted, refused: nil, retryAfter: 0))
            }
        } catch is Failed {}
        return asked
    }
}

/// What the database would answer for one key.
private final class Bucket: Sendable {
    private let state: Mutex<(left: Int, questions: [Int])>

    init(permits: Int) {
        state = Mutex((permits, []))
    }

    var questions: [Int] { state.withLock { $0.questions } }

    func take(_ request: PermitRequest) -> PermitVerdict {
        guard let wanted = request.wanted.first else { return PermitVerdict(granted: [], refused: nil, retryAfter: 0) }
        return state.withLock { state in
            state.questions.append(Int(wanted))
            let granted = min(Int(wanted), state.left)
            state.left -= granted
            return PermitVerdict(granted: [Int32(granted)], refused: granted > 0 ? nil : 0, retryAfter: 12)
        }
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
