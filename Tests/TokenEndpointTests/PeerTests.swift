import HTTPTypes
import NIOHTTP1
@testable import TokenEndpoint
import Testing

@Suite("Hosts, addresses and proxies")
struct PeerTests {
    @Test(
        "a host has one canonical form",
        arguments: [
            ("Auth.Example.COM", "auth.example.com"), ("auth.example.com:443", "auth.example.com"),
            ("auth.example.com.", "auth.example.com"),
            ("auth.example.com.:1337", "auth.example.com"), ("localhost", "localhost"), ("127.0.0.1:80", "127.0.0.1"),
        ])
    func canonical(_ authority: String, _ host: String) {
        #expect(HostName.canonical(authority) == host)
    }

    @Test(
        "what is not a bare host is none",
        arguments: [
            "", ".", ":80", "a/b", "a@b", "a b", "a\tb", "a:b", "a:123456", "[::1]", "a%00", "ä.example", "a_b",
            String(repeating: "a", count: 300),
        ])
    func noHost(_ authority: String) {
        #expect(HostName.canonical(authority) == nil)
    }

    private func peer(
        _ address: String, forwardedFor: [String] = [], forwardedHost: [String] = [],
        trusted: [String] = ["10.0.0.0/8"], trustsForwardedHost: Bool = true
    ) -> Peer {
        var headers: HTTPHeaders = ["Host": "a.example"]
        for value in forwardedFor { headers.add(name: "X-Forwarded-For", value: value) }
        for value in forwardedHost { headers.add(name: "X-Forwarded-Host", value: value) }
        let request = Request(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers))
        return Peer(
            request, address: IPAddress(address), trusted: trusted.compactMap { CIDR($0) },
            trustsForwardedHost: trustsForwardedHost)
    }

    @Test func `forwarded headers of an untrusted peer are not read`() {
        let peer = peer("203.0.113.9", forwardedFor: ["198.51.100.1"], forwardedHost: ["b.example"])
        #expect(peer.source == "203.0.113.9")
        #expect(peer.authority == "a.example")
        #expect(peer.forwardedHost == nil)
        #expect(peer.isUntrustedForwarder)
        #expect(peer.vary == "Host")
    }

    @Test func `the forwarded host of a trusted proxy is read only where it is switched on`() {
        let off = peer("10.0.0.1", forwardedHost: ["b.example"], trustsForwardedHost: false)
        #expect(off.forwardedHost == nil)
        #expect(off.vary == "Host")
        #expect(!off.isUntrustedForwarder)
        let on = peer("10.0.0.1", forwardedHost: ["b.example"])
        #expect(on.forwardedHost == "b.example")
        #expect(on.vary == "Host, X-Forwarded-Host")
        #expect(peer("10.0.0.1").vary == "Host, X-Forwarded-Host")
    }

    @Test(
        "the last value of the last line is the forwarded host",
        arguments: [
            (["b.example", "c.example"], "c.example"), (["b.example, c.example"], "c.example"),
            (["c.example, d.example", "b.example ,e.example"], "e.example"), (["b.example,"], ""),
        ])
    func lastForwardedHost(_ values: [String], _ host: String) {
        #expect(peer("10.0.0.1", forwardedHost: values).forwardedHost == host)
    }

    @Test(
        "from a trusted proxy the rightmost untrusted hop counts",
        arguments: [
            (["198.51.100.1"], "198.51.100.1"), (["1.2.3.4, 198.51.100.1"], "198.51.100.1"),
            (["198.51.100.1, 10.1.1.1"], "198.51.100.1"),
            (["1.2.3.4", "198.51.100.1"], "198.51.100.1"), ([], "10.0.0.1"), (["garbage"], "10.0.0.1"),
            (["198.51.100.1, garbage"], "10.0.0.1"),
            ([""], "10.0.0.1"), (["::ffff:198.51.100.1"], "198.51.100.1"),
        ])
    func hops(_ forwardedFor: [String], _ source: String) {
        #expect(peer("10.0.0.1", forwardedFor: forwardedFor, forwardedHost: ["b.example"]).source == source)
    }

    @Test(
        "an address is read however a proxy decorates it",
        arguments: [
            "198.51.100.1:51001", "\"198.51.100.1\"", "\"198.51.100.1:51001\"", "\t198.51.100.1 ",
            "[::ffff:198.51.100.1]:443",
            "::ffff:198.51.100.1%eth0", "198.51.100.1,", "198.51.100.1, , 10.9.9.9:80", "1.2.3.4:1, 198.51.100.1:2",
        ])
    func decorated(_ value: String) {
        #expect(peer("10.0.0.1", forwardedFor: [value]).source == "198.51.100.1")
    }

    @Test(
        "an IPv6 address, too",
        arguments: [
            "2001:db8:1:2::7", "[2001:db8:1:2::7]", "[2001:db8:1:2::7]:51001", "\"[2001:db8:1:2::7]:51001\"",
            "2001:db8:1:2::7%eth0", "[2001:db8:1:2::7%eth0]:80", " \" 2001:db8:1:2::7 \" ",
        ])
    func decoratedIPv6(_ value: String) {
        #expect(peer("10.0.0.1", forwardedFor: [value]).source == peer("2001:db8:1:2::7").source)
    }

    @Test(
        "what is no address counts as the proxy that sent it",
        arguments: [
            "unknown", "_hidden", "unix:", "198.51.100.1:", "198.51.100.1:123456", "198.51.100.1:x", "[198.51.100.1",
            "198.51.100.1]", "[2001:db8::1]x", "[2001:db8::1]:", "\"198.51.100.1", "198.51.100.1;", "198.51.100.1%1",
            "198.51.100", "0198.51.100.1", "[]", "[]:1", "\"\"", ":1", ":", "%",
            String(repeating: " ", count: 200) + "x",
        ])
    func noAddress(_ value: String) {
        #expect(peer("10.0.0.1", forwardedFor: ["1.2.3.4, " + value]).source == "10.0.0.1")
        #expect(peer("10.0.0.1", forwardedFor: ["1.2.3.4, \(value), 10.0.0.7"]).source == "10.0.0.7")
    }

    @Test func `an IPv6 client counts by its 64-bit network`() {
        #expect(peer("2001:db8:1:2:3:4:5:6").source == peer("2001:db8:1:2:ffff::1").source)
        #expect(peer("2001:db8:1:2::1").source != peer("2001:db8:1:3::1").source)
    }

    @Test(
        "ranges are whole or refused",
        arguments: ["", "10.0.0.0/33", "10.0.0/8", "::/129", "a/8", "10.0.0.0/8/8", "10.0.0.0/-1"])
    func badRanges(_ text: String) {
        #expect(CIDR(text) == nil)
    }

    @Test func `ranges contain what their prefix says`() throws {
        let range = try #require(CIDR("192.0.2.128/25"))
        #expect(range.contains(try #require(IPAddress("192.0.2.129"))))
        #expect(!range.contains(try #require(IPAddress("192.0.2.127"))))
        #expect(!range.contains(try #require(IPAddress("2001:db8::1"))))
        #expect(try #require(CIDR("::1")).contains(try #require(IPAddress("::1"))))
    }
}

@Suite("Request targets")
struct RequestTargetTests {
    private func path(_ target: String, hosts: [String] = ["a.example"]) -> String? {
        let headers = HTTPHeaders(hosts.map { ("Host", $0) })
        return Request(HTTPRequestHead(version: .http1_1, method: .GET, uri: target, headers: headers)).path
    }

    @Test func `the path is taken as sent, without the query`() {
        #expect(path("/connect/token?x=/y") == "/connect/token")
        #expect(path("//connect/token") == "//connect/token")
        #expect(path("/connect/%74oken") == "/connect/%74oken")
        #expect(path("connect/token") == nil)
    }

    @Test func `no host and two hosts are refused`() {
        #expect(path("/", hosts: []) == nil)
        #expect(path("/", hosts: ["a.example", "a.example"]) == nil)
        #expect(path("/", hosts: ["a.example", ""]) == nil)
    }

    @Test func `a method that is no token is refused`() {
        let headers: HTTPHeaders = ["Host": "a.example"]
        let head = HTTPRequestHead(version: .http1_1, method: .RAW(value: "GE T"), uri: "/", headers: headers)
        #expect(Request(head).path == nil)
    }

    @Test(
        "a target is in origin form, or in absolute form with the authority of Host",
        arguments: [
            ("/connect/token", "/connect/token"), ("http://a.example/connect/token?x", "/connect/token"),
            ("HTTPS://A.example", "/"), ("http://b.example/connect/token", nil), ("http://a.example:81/", nil),
            ("http://a.example@b/", nil), ("ftp://a.example/", nil), ("connect/token", nil), ("*", nil),
            ("a.example:443", nil),
        ])
    func absoluteForm(_ target: String, _ expected: String?) {
        #expect(path(target) == expected)
    }

    @Test func `a header field is found whatever its case, several are joined`() {
        let headers: HTTPHeaders = ["Host": "a.example", "x-THING": "1", "X-Thing": "2"]
        let request = Request(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/", headers: headers))
        let name = HTTPField.Name("X-Thing")
        #expect(name.flatMap { request.headers[$0] } == "1, 2")
        #expect(name.map { request.headers[values: $0] } == ["1", "2"])
    }
}

@Suite("Date header")
struct HTTPDateTests {
    @Test(
        "a time is written as RFC 9110 wants it",
        arguments: [(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT")])
    func format(_ second: Int, _ text: String) {
        #expect(HTTPDate.text(of: second) == text)
    }
}
