@testable import Grants
@testable import Persistence
import Testing

@Suite("Networks of sources")
struct SourceNetworkTests {
    @Test func `an IPv6 subnet is followed by the network that it is part of`() {
        let subjects: [RateLimiter.Subject] = [
            .init(.target, "a@b.example|2001:db8:1:2:0:0:0:0/64"), .init(.source, "2001:db8:1:2:0:0:0:0/64"),
            .init(.client, "app"),
        ]
        #expect(
            SourceNetwork.counted(subjects) == [
                subjects[0], subjects[1], .init(.source, "2001:db8:1:0:0:0:0:0/48"), subjects[2],
            ])
    }

    @Test(arguments: ["192.0.2.1", "unknown", "a:b/64", ""])
    func `any other source stands alone`(source: String) {
        #expect(SourceNetwork.counted([.init(.source, source)]) == [.init(.source, source)])
    }

    @Test func `the network has sixteen times the permits in the same mode`() {
        let limit = RateLimit(permits: 600, per: 60, burst: 200, enforced: false)
        let wide = SourceNetwork.limit(limit, of: .init(.source, "2001:db8:1:0:0:0:0:0/48"))
        #expect(wide == RateLimit(permits: 9600, per: 60, burst: 3200, enforced: false))
        #expect(SourceNetwork.limit(limit, of: .init(.source, "2001:db8:1:2:0:0:0:0/64")) == limit)
        #expect(SourceNetwork.limit(limit, of: .init(.client, "x/48")) == limit)
        #expect(SourceNetwork.limit(nil, of: .init(.source, "2001:db8:1:0:0:0:0:0/48")) == nil)
    }

    @Test func `a request asks for both, the subnet first`() async throws {
        let limit = RateLimit(permits: 600, per: 60, burst: 200, enforced: true)
        let limiter = RateLimiter(permits: nil)
        let realm = try Realm.fixture(rateLimits: [.refused: [.source: limit]])
        try await limiter.admitting(.refused, [.init(.source, "2001:db8:1:2:0:0:0:0/64")], realm: realm) { permits in
            #expect(
                permits.keys == [
                    "refused|source|2001:db8:1:2:0:0:0:0/64", "refused|source|2001:db8:1:0:0:0:0:0/48",
                ])
            #expect(permits.burst == [200, 3200])
            return ((), PermitVerdict(granted: [1, 1], refused: nil, retryAfter: 0))
        }
    }

    @Test func `a standing refusal is seen without taking anything`() async throws {
        let clock = TestClock()
        let limiter = RateLimiter(permits: nil, clock: clock.read)
        let realm = try Realm.fixture(
            rateLimits: [.refused: [.source: RateLimit(permits: 1, per: 60, burst: 1, enforced: true)]])
        let subjects = [RateLimiter.Subject(.source, "192.0.2.1")]
        #expect(limiter.standingRefusal(.refused, subjects, realm: realm) == nil)
        await #expect(throws: TokenError.self) {
            try await limiter.admitting(.refused, subjects, realm: realm) { _ in
                ((), PermitVerdict(granted: [0], refused: 0, retryAfter: 10))
            }
        }
        #expect(limiter.standingRefusal(.refused, subjects, realm: realm)?.retryAfterSeconds == 10)
        #expect(limiter.standingRefusal(.refused, [.init(.source, "192.0.2.2")], realm: realm) == nil)
        clock.advance(.seconds(10))
        #expect(limiter.standingRefusal(.refused, subjects, realm: realm) == nil)
    }
}
