import Grants
import HTTPTypes
import Logging
import NIOHTTP1
import Persistence
import Synchronization
import TestSupport
import Testing
@testable import TokenEndpoint

@Suite("Routing")
struct RoutingTests {
    /// Says which handler ran, and for which realm, host, parameter and source.
    private static func echo(_ name: String) -> Handler {
        { exchange in
            Answer(
                json: Array(
                    "\(name) \(exchange.realm.slug) \(exchange.host) \(exchange.pathParameter) \(exchange.source)".utf8)
            )
        }
    }

    private static let routes = [
        Route("/connect/token", [.post: .anonymous(echo("token"))]),
        Route("/document", [.get: .anonymous(echo("document")), .delete: .anonymous(echo("delete"))]),
        Route(prefix: "/things/", [.get: .anonymous(echo("thing")), .patch: .anonymous(echo("change"))]),
    ]

    private let fixture = ResponderFixture(
        routes,
        realms: [
            "r.example": RealmDocument(), "other.example": RealmDocument(slug: "other"),
        ])

    @Test(
        "a path is matched byte for byte",
        arguments: [
            ("/document", 200), ("/document?", 200), ("/document?x=/things/1", 200), ("/document/", 404),
            ("//document", 404), ("/Document", 404), ("/%64ocument", 404), ("/document;x", 404), ("/document#x", 404),
            ("/./document", 404), ("/x/../document", 404), ("/documen", 404), ("/documents", 404), ("/", 404),
            ("/document%00", 404), ("/document%2F", 404),
        ])
    func exactPaths(_ target: String, _ status: Int) async {
        #expect(await fixture.answer(.fixture(.GET, target)).status.code == status)
    }

    @Test(
        "a path parameter is one segment, as it came",
        arguments: [
            ("/things/1", "1"), ("/things/a%2Fb", "a%2Fb"), ("/things/..", ".."), ("/things/1?x", "1"),
            ("/things/", nil), ("/things", nil), ("/things/1/", nil), ("/things//1", nil), ("/things/1/2", nil),
        ])
    func parameters(_ target: String, _ parameter: String?) async {
        let answer = await fixture.answer(.fixture(.GET, target))
        if let parameter {
            #expect(answer.text == "thing r r.example \(parameter) \(ResponderFixture.stranger)")
        } else {
            #expect(answer == Answer(.notFound))
        }
    }

    @Test(
        "another method gets 405 and the methods that there are",
        arguments: [
            (HTTPMethod.GET, "/connect/token", "POST"), (.HEAD, "/connect/token", "POST"),
            (.PUT, "/connect/token", "POST"), (.OPTIONS, "/connect/token", "POST"),
            (.POST, "/document", "DELETE, GET, HEAD"),
            (.POST, "/things/1", "GET, HEAD, PATCH"), (.RAW(value: "post"), "/connect/token", "POST"),
        ])
    func otherMethods(_ method: HTTPMethod, _ target: String, _ allow: String) async {
        #expect(await fixture.answer(.fixture(method, target)) == Answer(.methodNotAllowed, headers: [.allow: allow]))
    }

    @Test func `HEAD is answered as GET is`() async {
        let get = await fixture.answer(.fixture(.GET, "/document"))
        #expect(get.status == .ok)
        #expect(await fixture.answer(.fixture(.HEAD, "/document")) == get)
    }

    @Test(
        "a host names its realm in any spelling",
        arguments: ["r.example", "R.EXAMPLE", "r.example.", "r.example:443", "r.example:8080", "R.Example.:1"])
    func hosts(_ host: String) async {
        let answer = await fixture.answer(.fixture(.GET, "/document", host: [host]))
        #expect(answer.text == "document r r.example  \(ResponderFixture.stranger)")
    }

    @Test(
        "a host that is no realm's gets an empty 404, whatever the path and the method",
        arguments: ["nowhere.example", "example", "x.r.example", "127.0.0.1", "r.example@x", ".", "r_example", ""])
    func unknownHosts(_ host: String) async {
        for request in [
            Request.fixture(.GET, "/document", host: [host]), .fixture(.PUT, "/document", host: [host]),
            .fixture(.GET, "/none", host: [host]), .fixture(.GET, "/document", host: [host], [("Expect", "x")]),
        ] {
            #expect(await fixture.answer(request) == Answer(.notFound))
        }
    }

    @Test func `no host, two hosts and another host in the target are a bad request`() async {
        #expect(await fixture.answer(.fixture(.GET, "/document", host: [])) == Answer(.badRequest))
        #expect(
            await fixture.answer(.fixture(.GET, "/document", host: ["r.example", "r.example"])) == Answer(.badRequest))
        #expect(
            await fixture.answer(.fixture(.GET, "http://other.example/document")) == Answer(.badRequest))
        #expect(await fixture.answer(.fixture(.GET, "http://r.example/document")).status == .ok)
    }

    @Test func `the host is looked at before the path, the path before the method, the method before the expectation`()
        async
    {
        let expecting = [("Expect", "200-ok")]
        #expect(await fixture.answer(.fixture(.PUT, "/none", host: ["nowhere.example"], expecting)).status == .notFound)
        #expect(await fixture.answer(.fixture(.PUT, "/none", expecting)).status == .notFound)
        #expect(await fixture.answer(.fixture(.PUT, "/document", expecting)).status == .methodNotAllowed)
        #expect(await fixture.answer(.fixture(.GET, "/document", expecting)).status == .expectationFailed)
        #expect(await fixture.answer(.fixture(.GET, "/document", [("Expect", "100-Continue")])).status == .ok)
    }

    @Test func `without a configuration the answer is 503 and says when to come back`() async {
        fixture.configuration.fail()
        let answer = await fixture.answer(.fixture(.GET, "/document"))
        #expect(answer == .unavailable)
        #expect(answer.header("Retry-After") == "1")
        #expect(await fixture.answer(.fixture(.GET, "/none")) == .unavailable, "and no path is told apart")
    }

    @Test func `a realm whose configuration does not decode is unavailable, and the others are served`() async {
        fixture.configuration.put(RealmDocument(slug: "\"broken"), host: "broken.example")
        #expect(await fixture.answer(.fixture(.GET, "/document", host: ["broken.example"])) == .unavailable)
        #expect(await fixture.answer(.fixture(.GET, "/document", host: ["other.example"])).status == .ok)
    }

    @Test func `an App's host shows the realm as the App has it`() async {
        var realm = RealmDocument()
        realm.apps = [RealmDocument.app("shop", host: "shop.r.example", nativeGrantsEnabled: false)]
        let native = Route(
            "/native",
            [
                .get: .anonymous { exchange in
                    Answer(json: Array((exchange.realm.app?.slug ?? "none").utf8))
                }
            ]
        ).requiring(.nativeGrants)
        let fixture = ResponderFixture([native], realms: ["r.example": realm, "shop.r.example": realm])
        #expect(await fixture.answer(.fixture(.GET, "/native")).text == "none")
        let refused = await fixture.answer(.fixture(.GET, "/native", host: ["shop.r.example"]))
        #expect(refused.member("title") == "NativeGrants.Disabled")
    }

    @Test func `only known routes become labels of metrics`() async {
        _ = await fixture.answer(.fixture(.GET, "/document"))
        _ = await fixture.answer(.fixture(.GET, "/things/secret-1"))
        _ = await fixture.answer(.fixture(.GET, "/secret-2"))
        let text = fixture.metrics.text()
        #expect(text.contains(#"postern_http_requests_total{route="/document",status="200"} 1"#))
        #expect(text.contains(#"postern_http_requests_total{route="/things/",status="200"} 1"#))
        #expect(text.contains(#"postern_http_requests_total{route="other",status="404"} 1"#))
        #expect(!text.contains("secret"))
    }

    @Test func `pages of a realm with an https origin carry HSTS, and nothing else does`() async {
        let page = Route(
            "/page",
            [
                .get: .page { _ in
                    var answer = Answer(.ok, headers: [.contentType: "text/html; charset=utf-8"])
                    answer.body = Array("<!doctype html>".utf8)
                    return answer
                }
            ])
        let fixture = ResponderFixture(
            [page] + Self.routes,
            realms: ["r.example": RealmDocument(), "plain.example": RealmDocument(issuer: "http://plain.example")])
        let secure = await fixture.answer(.fixture(.GET, "/page"))
        #expect(secure.header("Strict-Transport-Security") == "max-age=31536000")
        #expect(await fixture.answer(.fixture(.GET, "/document")).header("Strict-Transport-Security") == nil)
        let plain = await fixture.answer(.fixture(.GET, "/page", host: ["plain.example"]))
        #expect(plain.status == .ok)
        #expect(plain.header("Strict-Transport-Security") == nil)
    }

    // MARK: Forwarded headers

    private func forwarded(
        for source: String? = nil, host: String? = nil, to own: String = "r.example",
        from address: String, by fixture: ResponderFixture? = nil
    ) async -> Answer {
        let headers = [("X-Forwarded-For", source), ("X-Forwarded-Host", host)].compactMap { name, value in
            value.map { (name, $0) }
        }
        return await (fixture ?? self.fixture).answer(.fixture(.GET, "/document", host: [own], headers), from: address)
    }

    @Test func `a trusted proxy names the caller, and a stranger names nobody`() async {
        let proxied = await forwarded(for: "198.51.100.1", from: ResponderFixture.proxy)
        #expect(proxied.text == "document r r.example  198.51.100.1")
        let direct = await forwarded(for: "198.51.100.1", from: ResponderFixture.stranger)
        #expect(direct.text == "document r r.example  \(ResponderFixture.stranger)")
    }

    @Test func `a stranger that forwards is counted each time and logged once`() async {
        for _ in 0..<3 { _ = await forwarded(for: "198.51.100.1", from: ResponderFixture.stranger) }
        _ = await forwarded(for: "198.51.100.1", from: ResponderFixture.proxy)
        #expect(fixture.metrics.text().contains("\npostern_untrusted_forwarded_total 3\n"))
        #expect(fixture.log.lines.filter { $0.contains("POSTERN_TRUSTED_PROXIES") }.count == 1)
    }

    @Test func `a forwarded host counts from a trusted proxy and only where that is switched on`() async {
        let inside = "proxy.internal"
        #expect(
            await forwarded(host: "other.example", to: inside, from: ResponderFixture.proxy).text.hasPrefix(
                "document other"))
        #expect(await forwarded(host: "other.example", from: ResponderFixture.stranger).text.hasPrefix("document r "))
        let off = ResponderFixture(Self.routes, trustsForwardedHost: false)
        #expect(
            await forwarded(host: "other.example", from: ResponderFixture.proxy, by: off).text.hasPrefix("document r "))
        #expect(await forwarded(host: "", to: inside, from: ResponderFixture.proxy) == Answer(.notFound))
        #expect(await forwarded(host: "nowhere.example", to: inside, from: ResponderFixture.proxy) == Answer(.notFound))
    }

    @Test func `two hosts of two realms in one request are refused, two hosts of one realm are not`() async {
        #expect(await forwarded(host: "other.example", from: ResponderFixture.proxy) == Answer(.badRequest))
        #expect(await forwarded(host: "nowhere.example", from: ResponderFixture.proxy) == Answer(.badRequest))
        var realm = RealmDocument()
        realm.slug = "r"
        fixture.configuration.put(realm, host: "one.example")
        fixture.configuration.put(realm, host: "two.example")
        fixture.realms.clusters[0].invalidate()
        let answer = await forwarded(host: "two.example", to: "one.example", from: ResponderFixture.proxy)
        #expect(answer.text.hasPrefix("document r two.example"))
    }
}

@Suite("Uniform deadline")
struct UniformDeadlineTests {
    private func fixture(
        _ uniform: Route.UniformAnswers, deadline: Duration = .milliseconds(100), _ handler: @escaping Handler
    ) -> ResponderFixture {
        ResponderFixture([Route("/asked", [.post: .anonymous(handler)]).uniform(uniform)], deadline: deadline)
    }

    /// When the answer of a request left, after its arrival.
    private func released(
        _ fixture: ResponderFixture, workTakes work: Duration = .zero
    ) async -> Duration? {
        let request = Request.fixture(.POST, "/asked")
        fixture.clock.set(request.arrivedAt + work)
        _ = await fixture.answer(request)
        #expect(fixture.clock.wakeUps.count <= 1)
        return fixture.clock.wakeUps.first.map { request.arrivedAt.duration(to: $0) }
    }

    @Test func `an accepted request is answered a fixed time after it arrived`() async {
        let fixture = fixture(.accepted) { _ in Answer(.accepted) }
        #expect(await released(fixture) == .milliseconds(100))
    }

    @Test(
        "work that takes longer is released at the next multiple",
        arguments: [(99, 100), (100, 100), (101, 200), (250, 300), (1001, 1100)])
    func multiples(_ work: Int, _ expected: Int) async {
        let fixture = fixture(.accepted) { _ in Answer(.accepted) }
        #expect(await released(fixture, workTakes: .milliseconds(work)) == .milliseconds(expected))
    }

    @Test func `without a deadline nothing waits`() async {
        let fixture = fixture(.accepted, deadline: .zero) { _ in Answer(.accepted) }
        #expect(await released(fixture) == nil)
    }

    @Test(arguments: TokenError.Code.allCases)
    func `a refusal waits exactly when it depends on an account`(_ code: TokenError.Code) async {
        let isAboutAccount = [.invalidGrant, .authorizationPending, .slowDown, .accessDenied, .expiredToken].contains(
            code)
        let uniform = fixture(.refusals) { _ in throw TokenError(code, "Refused.") }
        #expect(await released(uniform) == (isAboutAccount ? .milliseconds(100) : nil))
        let plain = fixture(.none) { _ in throw TokenError(code, "Refused.") }
        #expect(await released(plain) == nil)
    }

    @Test func `an answer of a route whose refusals are uniform leaves at once`() async {
        let fixture = fixture(.refusals) { _ in Answer(.ok) }
        #expect(await released(fixture) == nil)
    }
}

@Suite("Limit of refused calls")
struct RefusalLimitTests {
    private func fixture(_ status: HTTPResponse.Status) -> ResponderFixture {
        var realm = RealmDocument()
        realm.rateLimits = [RealmDocument.rateLimit("refused", "source", permits: 3)]
        return ResponderFixture([Route("/called", [.get: .anonymous { _ in Answer(status) }])], realms: ["r.example": realm])
    }

    /// Uses the budget up, as the database would say.
    private func exhaust(_ fixture: ResponderFixture, source: String = ResponderFixture.stranger) async throws {
        let realm = try #require(try await RealmDirectory(source: fixture.configuration).realm(forHost: "r.example"))
        await #expect(throws: TokenError.self) {
            try await fixture.limiter.admitting(.refused, [.init(.source, source)], realm: realm) { _ in
                ((), PermitVerdict(granted: [0], refused: 0, retryAfter: 20))
            }
        }
    }

    @Test(arguments: [HTTPResponse.Status.unauthorized, .forbidden])
    func `a source without a permit gets 429 in the place of its refusal`(_ status: HTTPResponse.Status) async throws {
        let fixture = fixture(status)
        #expect(await fixture.answer(.fixture(.GET, "/called")).status == status)
        try await exhaust(fixture)
        let limited = await fixture.answer(.fixture(.GET, "/called"))
        #expect(limited.status == .tooManyRequests)
        #expect(limited.header("Retry-After") == "20")
        #expect(limited.member("policy") == "refused")
        #expect(limited.member("dimension") == "source")
        #expect(
            await fixture.answer(.fixture(.GET, "/called"), from: "198.51.100.1").status == status, "another source")
    }

    @Test(arguments: [HTTPResponse.Status.ok, .badRequest, .notFound, .serviceUnavailable])
    func `an answer that is no refusal is given without a permit`(_ status: HTTPResponse.Status) async throws {
        let fixture = fixture(status)
        try await exhaust(fixture)
        #expect(await fixture.answer(.fixture(.GET, "/called")).status == status)
    }

    @Test func `the caller behind a proxy is counted, not the proxy`() async throws {
        let fixture = fixture(.unauthorized)
        try await exhaust(fixture, source: "198.51.100.1")
        let request = { Request.fixture(.GET, "/called", [("X-Forwarded-For", $0)]) }
        #expect(await fixture.answer(request("198.51.100.1"), from: ResponderFixture.proxy).status == .tooManyRequests)
        #expect(await fixture.answer(request("198.51.100.2"), from: ResponderFixture.proxy).status == .unauthorized)
    }
}
