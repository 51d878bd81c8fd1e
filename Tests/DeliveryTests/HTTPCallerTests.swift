import Foundation
import Glibc
import Persistence
import Testing

@testable import Delivery

@Suite("Calls to endpoints")
struct HTTPCallerTests {
    private let body = Array(#"{"a":1}"#.utf8)

    private func call(
        _ server: MailServer, _ path: String, scheme: String = "http", host: String = "localhost"
    ) -> HTTPCall {
        var call = HTTPCall(
            url: "\(scheme)://\(host):\(server.port)/\(path)", headers: [("Content-Type", "application/json")],
            body: body)
        // The machine may be busy.
        (call.connect, call.total) = (.seconds(20), .seconds(20))
        return call
    }

    @Test func `an answer is its status, 64 KiB of its body and how long to wait`() async throws {
        try await MailServer.http { server in
            let caller = HTTPCaller(sessions: 2)
            func post(_ path: String) async -> HTTPAnswer {
                await caller.post(call(server, path), before: .now + .seconds(30))
            }
            let sid = Array(#"{"sid":"SM1234","id":7}"#.utf8)
            #expect(await post("200") == .answered(status: 200, body: sid, isWhole: true, retryAfter: nil))
            #expect(await post("204") == .answered(status: 204, body: [], isWhole: true, retryAfter: nil))
            #expect(await post("503") == .answered(status: 503, body: sid, isWhole: true, retryAfter: nil))
            #expect(
                await post("retry")
                    == .answered(status: 429, body: Array("{}".utf8), isWhole: true, retryAfter: .seconds(7)))
            #expect(await post("redirect") == .answered(status: 301, body: [], isWhole: true, retryAfter: nil))
            guard case .answered(201, let big, isWhole: false, _) = await post("big") else {
                Issue.record("a long answer has a status")
                return
            }
            #expect(big.count == 65_536)
            let requests = await server.allEvents().filter { $0.event == "request" }
            #expect(requests.count == 6, "no redirect is followed, and nothing is sent twice")
            #expect(requests.allSatisfy { $0.text == #"{"a":1}"# && $0.headers?["expect"] == nil })
            #expect(requests.first?.headers?["user-agent"] == "Postern")
        }
    }

    @Test func `a call that may be repeated uses the connection of the one before, and a new one when that was closed`()
        async throws
    {
        try await MailServer.http { server in
            let caller = HTTPCaller(sessions: 1)
            func post(_ path: String, mayRepeat: Bool = true) async -> HTTPAnswer {
                var call = call(server, path)
                call.mayRepeat = mayRepeat
                return await caller.post(call, before: .now + .seconds(30))
            }
            let accepted = HTTPAnswer.answered(status: 202, body: [], isWhole: true, retryAfter: nil)
            for _ in 0..<3 { #expect(await post("open") == accepted) }
            #expect(await post("open", mayRepeat: false) == accepted)
            for _ in 0..<3 { #expect(await post("shut") == accepted) }
            let events = await server.allEvents()
            let requests = events.filter { $0.event == "request" }
            #expect(requests.count == 7)
            #expect(requests.allSatisfy { $0.text == #"{"a":1}"# })
            // One for three calls and the one that is shut; one for the call that is not to be repeated; one for each
            // after a close.
            let letters = ["accepted": "a", "request": "r"]
            #expect(events.compactMap { letters[$0.event] }.joined() == "arrrarrarar")
        }
    }

    @Test(arguments: ["close", "hang", "trickle", "garbage"])
    func `without an answer to a whole request nobody knows`(_ path: String) async throws {
        try await MailServer.http { server in
            let started = ContinuousClock.now
            var call = call(server, path)
            call.total = .seconds(2)
            #expect(await HTTPCaller(sessions: 1).post(call, before: .now + .seconds(30)) == .inDoubt)
            #expect(ContinuousClock.now - started < .seconds(15), "not as long as the server hangs")
            #expect(await server.allEvents().filter { $0.event == "request" }.count == 1)
        }
    }

    @Test func `the status of an answer that never ends counts`() async throws {
        try await MailServer.http { server in
            var call = call(server, "drip")
            call.total = .seconds(2)
            guard
                case .answered(200, _, isWhole: false, _) =
                    await HTTPCaller(sessions: 1).post(call, before: .now + .seconds(30))
            else {
                Issue.record("the status was there")
                return
            }
        }
    }

    @Test func `children of this process do not get its connections`() async throws {
        try await MailServer.http { server in
            let (caller, order) = (HTTPCaller(sessions: 1), call(server, "hang"))
            let hanging = Task { await caller.post(order, before: .now + .seconds(30)) }
            _ = try await server.next("request")
            let flags = flagsOfConnections(to: server.port)
            #expect(!flags.isEmpty && flags.allSatisfy { $0 & FD_CLOEXEC != 0 })
            hanging.cancel()
            _ = await hanging.value
        }
    }

    private func flagsOfConnections(to port: Int) -> [Int32] {
        (Int32(0)..<4096).compactMap { descriptor in
            var address = sockaddr_in6()
            var size = socklen_t(MemoryLayout.size(ofValue: address))
            let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) == 0 }
            }
            let isIP = [AF_INET, AF_INET6].contains(Int32(address.sin6_family))
            return isConnected && isIP && Int(address.sin6_port.bigEndian) == port ? fcntl(descriptor, F_GETFD) : nil
        }
    }

    @Test func `a certificate has to prove the name`() async throws {
        let files = try Certificates.files.get()
        try await MailServer.http([files.certificate, files.key]) { server in
            let trusting = HTTPCaller(sessions: 1, caFile: files.certificate)
            guard
                case .answered(200, _, _, _) =
                    await trusting.post(call(server, "200", scheme: "https"), before: .now + .seconds(30))
            else {
                Issue.record("the certificate is right")
                return
            }
            #expect(await trusting.connect(to: "https://localhost:\(server.port)/") == nil)
            for (caller, host) in [
                (HTTPCaller(sessions: 1), "localhost"), (HTTPCaller(sessions: 1, caFile: files.stranger), "localhost"),
                (trusting, "127.0.0.1"),
            ] {
                let call = call(server, "200", scheme: "https", host: host)
                #expect(await caller.post(call, before: .now + .seconds(30)) == .failed(.tls))
                #expect(await caller.connect(to: call.url) == .tls)
            }
            #expect(await server.allEvents().filter { $0.event == "request" }.count == 1)
        }
    }

    @Test(arguments: [
        "http://example.com/", "http://localhost.example.com/", "http://127.0.0.1@example.com/",
        "http://localhost:1@example.com/", "ftp://localhost/", "file:///etc/passwd", "HTTP://example.com/", "",
    ])
    func `plain HTTP goes to this machine only`(_ url: String) async {
        let call = HTTPCall(url: url, headers: [], body: body)
        #expect(call.scheme == nil)
        #expect(await HTTPCaller(sessions: 1).post(call, before: .now + .seconds(5)) == .failed(.connection))
    }

    @Test(arguments: ["http://localhost", "http://127.0.0.1:8080/x", "http://[::1]:1/?a=b", "https://example.com/"])
    func `and TLS anywhere`(_ url: String) {
        #expect(HTTPCall(url: url, headers: [], body: []).scheme == (url.hasPrefix("https") ? "https" : "http"))
    }

    @Test func `nothing listens, too late, or no longer wanted`() async throws {
        let caller = HTTPCaller(sessions: 1)
        let port = try await MailServer.http { $0.port }
        let nobody = HTTPCall(url: "http://127.0.0.1:\(port)/200", headers: [], body: body)
        #expect(await caller.post(nobody, before: .now + .seconds(5)) == .failed(.connection))
        #expect(await caller.post(nobody, before: .now) == .failed(.cancelled))
        try await MailServer.http { server in
            let call = call(server, "hang")
            let posting = Task { await caller.post(call, before: .now + .seconds(30)) }
            _ = try await server.next("request")
            let cancelled = ContinuousClock.now
            posting.cancel()
            #expect(await posting.value == .inDoubt)
            #expect(.now - cancelled < .seconds(10), "at once, and not when its time is over")
        }
    }

    @Test func `no more calls are under way than there are sessions, and the next begins when one has ended`()
        async throws
    {
        try await MailServer.http { server in
            func post(_ path: String, by caller: HTTPCaller) -> Task<HTTPAnswer, Never> {
                Task { await caller.post(call(server, path), before: .now + .seconds(30)) }
            }
            let good = HTTPAnswer.answered(status: 204, body: [], isWhole: true, retryAfter: nil)
            let (caller, other) = (HTTPCaller(sessions: 2), HTTPCaller(sessions: 1))
            let hanging = [post("hang", by: caller), post("hang", by: caller)]
            for _ in hanging { _ = try await server.next("request") }
            let third = post("hang", by: caller)
            // If it had been begun, it would have been sent before these are answered.
            for _ in 0..<10 { #expect(await post("204", by: other).value == good) }
            third.cancel()
            #expect(await third.value == .failed(.cancelled), "at once, and not when a place is free")

            let fourth = post("204", by: caller)
            hanging[0].cancel()
            #expect(await hanging[0].value == .inDoubt)
            #expect(await fourth.value == good)
            // More than there is room for, at once.
            let calls = (0..<5).map { _ in post("204", by: caller) }
            for call in calls { #expect(await call.value == good) }
            hanging[1].cancel()
            #expect(await hanging[1].value == .inDoubt)
        }
    }

    @Test func `calls of one realm have a quarter of the places, and wait until their time is over`() async throws {
        try await MailServer.http { server in
            let caller = HTTPCaller(sessions: 8)
            let (busy, other) = (UUIDValue.random(), UUIDValue.random())
            func post(_ path: String, for realm: UUIDValue?, before seconds: Int = 30) -> Task<HTTPAnswer, Never> {
                var call = call(server, path)
                call.realm = realm
                return Task { [call] in await caller.post(call, before: .now + .seconds(seconds)) }
            }
            let good = HTTPAnswer.answered(status: 204, body: [], isWhole: true, retryAfter: nil)
            let hanging = [post("hang", for: busy), post("hang", for: busy)]
            for _ in hanging { _ = try await server.next("request") }
            let begun = ContinuousClock.now
            let third = post("third/204", for: busy)
            #expect(await post("204", for: busy, before: 1).value == .failed(.cancelled))
            #expect(.now - begun < .seconds(10), "before a place became free")
            for realm in [other, other, other, nil] { #expect(await post("204", for: realm).value == good) }
            hanging[0].cancel()
            #expect(await hanging[0].value == .inDoubt)
            #expect(await third.value == good)
            hanging[1].cancel()
            #expect(await hanging[1].value == .inDoubt)
            let calls = (0..<5).map { _ in post("last/204", for: busy) }
            for call in calls { #expect(await call.value == good) }
            let paths = await server.allEvents().filter { $0.event == "request" }.compactMap(\.path)
            let expected = ["/hang", "/hang", "/204", "/204", "/204", "/204", "/third/204"]
            #expect(paths == expected + Array(repeating: "/last/204", count: 5))
        }
    }

    @Test func `tasks run on the thread of the calls, with less of a processor than others where they are background`()
        async throws
    {
        for (isBackground, nice) in [(false, 0), (true, 10)] {
            let caller = HTTPCaller(sessions: 1, isBackground: isBackground)
            let found = await withTaskExecutorPreference(caller.executor) {
                await Task.yield()
                return ThreadFacts.here()
            }
            #expect(found.nice == nice)
            let again = await withTaskExecutorPreference(caller.executor) { ThreadFacts.here() }
            #expect(again.thread == found.thread)
            try await MailServer.http { server in
                let after = await withTaskExecutorPreference(caller.executor) {
                    _ = await caller.post(call(server, "204"), before: .now + .seconds(30))
                    return ThreadFacts.here()
                }
                #expect(after.thread == found.thread)
            }
        }
    }
}

private struct ThreadFacts: Sendable {
    let thread: UInt
    let nice: Int

    /// Never inlined, so that the thread is asked for each time.
    @inline(never)
    static func here() -> ThreadFacts {
        ThreadFacts(thread: UInt(pthread_self()), nice: Int(getpriority(Int32(PRIO_PROCESS.rawValue), 0)))
    }
}

@Suite("Addresses of calls")
struct OutgoingAddressTests {
    private func mayConnect(_ text: String, scheme: String) -> Bool {
        var (four, six) = (sockaddr_in(), sockaddr_in6())
        if inet_pton(AF_INET, text, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            return withUnsafeBytes(of: &four) { bytes in
                bytes.baseAddress.map { OutgoingAddress.mayConnect($0, length: bytes.count, scheme: scheme) } ?? false
            }
        }
        guard inet_pton(AF_INET6, text, &six.sin6_addr) == 1 else { return false }
        six.sin6_family = sa_family_t(AF_INET6)
        return withUnsafeBytes(of: &six) { bytes in
            bytes.baseAddress.map { OutgoingAddress.mayConnect($0, length: bytes.count, scheme: scheme) } ?? false
        }
    }

    @Test(arguments: [
        "169.254.169.254", "169.254.0.1", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16",
        "fe80::1", "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "::ffff:169.254.169.254",
        "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254",
        "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1", "2001::5601:5601",
    ])
    func `an address of the link or of a metadata service is never connected to`(_ address: String) {
        #expect(!mayConnect(address, scheme: "https"))
    }

    @Test(arguments: [
        "203.0.113.7", "10.0.0.1", "169.253.1.1", "127.0.0.1", "2001:db8::1", "fec0::1", "fd00::1", "::1",
        "::ffff:10.0.0.1",
    ])
    func `others are`(_ address: String) {
        #expect(mayConnect(address, scheme: "https"))
    }

    @Test func `plain text goes to this machine only, whatever a name stands for`() {
        for address in ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"] {
            #expect(mayConnect(address, scheme: "http"))
        }
        for address in ["203.0.113.7", "10.0.0.1", "0.0.0.0", "::", "2001:db8::1", "::ffff:10.0.0.1"] {
            #expect(!mayConnect(address, scheme: "http"))
        }
    }

    @Test func `what may not be connected to is said`() async {
        let call = HTTPCall(url: "https://169.254.169.254/latest", headers: [], body: [])
        let caller = HTTPCaller(sessions: 1)
        #expect(await caller.post(call, before: .now + .seconds(5)) == .failed(.address))
        #expect(await caller.connect(to: call.url) == .address)
    }
}
