import HTTPTypes
import NIOHTTP1
import TestSupport
import Testing
@testable import TokenEndpoint

@Suite("Hosts that no realm has")
struct UnknownHostTests {
    private let fixture = ResponderFixture([Route("/document", [.get: .anonymous { _ in Answer(json: []) }])])

    private var told: [String] { fixture.log.lines.filter { $0.hasPrefix("warning no realm has the host") } }

    @Test func `each is answered 404 and counted, and one of them is told`() async {
        for number in 0..<10_000 {
            let answer = await fixture.answer(.fixture(.GET, "/document", host: ["h\(number).example"]))
            #expect(answer == Answer(.notFound))
        }
        #expect(told == ["warning no realm has the host \"h0.example\" [:] [:]"])
        let series = fixture.metrics.text().split(separator: "\n").filter { $0.hasPrefix("postern_unknown_host_total") }
        #expect(series == ["postern_unknown_host_total 10000"])
    }

    @Test func `a host of a realm is neither counted nor told, whatever the path`() async {
        for path in ["/document", "/none"] { _ = await fixture.answer(.fixture(.GET, path)) }
        #expect(told == [])
        #expect(fixture.metrics.text().contains("\npostern_unknown_host_total 0\n"))
    }

    @Test func `one a minute is told`() {
        let hosts = UnknownHosts(transport: fixture.transport, logger: fixture.log.logger)
        let start = ContinuousClock.now
        for second in 0...180 { hosts.note("at-\(second).example", at: start + .seconds(second)) }
        #expect(told.map { $0.split(separator: "\"")[1] } == [0, 60, 120, 180].map { "at-\($0).example" })
    }

    @Test(
        "what a stranger wrote is told as far as it is printable, and cannot leave its quotation marks",
        arguments: [
            ("nowhere.example", "nowhere.example"),
            (String(repeating: "a", count: 8192), String(repeating: "a", count: 64)),
            ("a\u{1B}[31mb", "a?[31mb"), ("a\"b\\c d", "a?b?c?d"), ("a\r\nb", "a??b"), ("ü.example", "??.example"),
            ("r.example@x", "r.example@x"),
            (String(repeating: "a", count: 63) + "ü", String(repeating: "a", count: 63) + "?"),
            ("", ""),
        ])
    func shown(_ host: String, _ shown: String) async {
        #expect(await fixture.answer(.fixture(.GET, "/document", host: [host])) == Answer(.notFound))
        #expect(told == ["warning no realm has the host \"\(shown)\" [:] [:]"])
    }
}
