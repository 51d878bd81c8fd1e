import HTTPTypes
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
        _ address: String, forwardedFor: [String] = [], forwardedHost: String? = nil, trusted: [String] = ["10.0.0.0/8"]
    ) -> Peer {
        var fields = HTTPFields()
        for value in forwardedFor { fields.append(HTTPField(name: .xForwardedFor, value: value)) }
        if let forwardedHost { fields[.xForwardedHost] = forwardedHost }
        let head = HTTPRequest(method: .get, scheme: nil, authority: "a.example", path: "/", headerFields: fields)
        return Peer(head: head, address: IPAddress(address), trusted: trusted.compactMap { CIDR($0) })
    }

    @Test func `forwarded headers of an untrusted peer are not read`() {
        let peer = peer("203.0.113.9", forwardedFor: ["198.51.100.1"], forwardedHost: "b.example")
        #expect(peer.source == "203.0.113.9")
        #expect(peer.authority == "a.example")
    }

    @Test(
        "from a trusted proxy the rightmost untrusted hop counts",
        arguments: [
            (["198.51.100.1"], "198.51.100.1"), (["1.2.3.4, 198.51.100.1"], "198.51.100.1"),
            (["198.51.100.1, 10.1.1.1"], "198.51.100.1"),
            (["1.2.3.4", "198.51.100.1"], "198.51.100.1"), ([], "10.0.0.1"), (["garbage"], "10.0.0.1"),
            (["198.51.100.1, garbage"], "10.0.0.1"),
            (["::ffff:127.0.0.1%eth0"], "10.0.0.1"), (["1.2.3.4:99"], "10.0.0.1"), ([""], "10.0.0.1"),
            (["::ffff:198.51.100.1"], "198.51.100.1"),
        ])
    func hops(_ forwardedFor: [String], _ source: String) {
        #expect(peer("10.0.0.1", forwardedFor: forwardedFor, forwardedHost: "b.example").source == source)
        #expect(peer("10.0.0.1", forwardedFor: forwardedFor, forwardedHost: "b.example").authority == "b.example")
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
    private func path(_ path: String?, authority: String? = "a.example", extraHost: String? = nil) -> String? {
        var fields = HTTPFields()
        if let extraHost { fields.append(HTTPField(name: .host, value: extraHost)) }
        return RequestTarget.path(
            of: HTTPRequest(method: .get, scheme: nil, authority: authority, path: path, headerFields: fields))
    }

    @Test func `the path is taken as sent, without the query`() {
        #expect(path("/connect/token?x=/y") == "/connect/token")
        #expect(path("//connect/token") == "//connect/token")
        #expect(path("/connect/%74oken") == "/connect/%74oken")
        #expect(path("connect/token") == nil)
    }

    @Test func `no host and two hosts are refused`() {
        #expect(path("/", authority: nil) == nil)
        #expect(path("/", extraHost: "a.example") == nil)
        #expect(path("/", extraHost: "") == nil)
    }

    @Test(
        "a target is the host's own in origin form, or in absolute form with the same authority",
        arguments: [
            ("/connect/token", true), ("http://a.example/connect/token", true), ("HTTPS://A.example", true),
            ("http://b.example/connect/token", false), ("http://a.example:81/", false), ("http://a.example@b/", false),
            ("ftp://a.example/", false), ("connect/token", false), ("*", false), ("a.example:443", false),
        ])
    func absoluteForm(_ uri: String, _ isOwn: Bool) {
        #expect(TargetHandler.isOwn(uri, host: "a.example") == isOwn)
    }
}
