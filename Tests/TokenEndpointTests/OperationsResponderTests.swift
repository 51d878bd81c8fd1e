import HTTPTypes
import NIOHTTP1
@testable import TokenEndpoint
import Testing

@Suite("The operators' listener")
struct OperationsResponderTests {
    private func answer(_ request: Request, notReady reason: String? = nil) async -> Answer {
        let metrics = Metrics()
        _ = TransportMetrics(metrics.registry)
        return await OperationsResponder(metrics: metrics, isReady: { reason }).respond(to: request)
    }

    @Test func `it answers without a host`() async {
        #expect(await answer(.fixture(.GET, "/healthz", host: [])).text == "ok\n")
        #expect(await answer(.fixture(.HEAD, "/healthz?x", host: [])).status == .ok)
    }

    @Test func `a node that is not ready says why, and lives`() async {
        #expect(await answer(.fixture(.GET, "/readyz")).text == "ready\n")
        let waiting = await answer(.fixture(.GET, "/readyz"), notReady: "the database is not available")
        #expect(waiting.status == .serviceUnavailable)
        #expect(waiting.text == "the database is not available\n")
        #expect(await answer(.fixture(.GET, "/healthz"), notReady: "x").status == .ok)
    }

    @Test func `metrics are of requests and of connections, in the Prometheus text format`() async {
        let answer = await answer(.fixture(.GET, "/metrics"))
        #expect(answer.headers[.contentType] == "text/plain; version=0.0.4; charset=utf-8")
        for name in ["postern_http_request_duration_seconds", "postern_connections"] {
            #expect(answer.text.contains("# TYPE \(name) "))
        }
    }

    @Test(arguments: ["/", "/connect/token", "/metrics/", "/healthz/x", ""])
    func `there is nothing else`(_ target: String) async {
        #expect(await answer(.fixture(.GET, target)) == Answer(.notFound))
    }

    @Test func `it is only read`() async {
        let refused = Answer(.methodNotAllowed, headers: [.allow: "GET, HEAD"])
        #expect(await answer(.fixture(.POST, "/metrics")) == refused)
        #expect(await answer(.fixture(.DELETE, "/none")) == refused)
    }
}
