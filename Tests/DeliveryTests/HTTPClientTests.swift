import Testing

@testable import Delivery

@Suite("Requests of commands")
struct HTTPClientTests {
    private func request(_ server: MailServer, _ path: String, scheme: String = "http") -> HTTPClient.Request {
        var request = HTTPClient.Request(url: "\(scheme)://localhost:\(server.port)/\(path)")
        request.total = .seconds(20)  // the machine may be busy
        return request
    }

    private func failure(of request: HTTPClient.Request) async -> String? {
        do throws(HTTPClient.Failure) {
            _ = try await HTTPClient().answer(to: request)
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `an answer is its status, all its fields and its body, and a redirect is an answer`() async throws {
        try await MailServer.http { server in
            let client = HTTPClient()
            let found = try await client.answer(to: request(server, "200"))
            #expect(found.status == 200 && found.body == Array(#"{"sid":"SM1234","id":7}"#.utf8))
            let moved = try await client.answer(to: request(server, "redirect"))
            #expect(moved.status == 301 && moved.values(of: "location") == ["/200"] && moved.body.isEmpty)
            #expect(moved.values(of: "Retry-After").isEmpty)
            let requests = await server.allEvents().filter { $0.event == "request" }
            #expect(requests.map(\.path) == ["/200", "/redirect"])
        }
    }

    @Test func `a request has its method, its fields and, when it posts, its body`() async throws {
        try await MailServer.http { server in
            let client = HTTPClient()
            for method in ["GET", "POST", "DELETE"] {
                var request = request(server, "204")
                (request.method, request.headers) = (method, [("Content-Type", "text/plain"), ("DPoP", "e.y.J")])
                if method == "POST" { request.body = Array(repeating: UInt8(ascii: "x"), count: 100_000) }
                let answer = try await client.answer(to: request)
                #expect(answer.status == 204)
            }
            let requests = await server.allEvents().filter { $0.event == "request" }
            #expect(requests.map(\.method) == ["GET", "POST", "DELETE"])
            #expect(requests.map(\.text?.count) == [0, 100_000, 0])
            #expect(requests.allSatisfy { $0.headers?["dpop"] == "e.y.J" && $0.headers?["expect"] == nil })
        }
    }

    @Test func `a request without a whole answer fails with a sentence`() async throws {
        try await MailServer.http { server in
            #expect(await failure(of: request(server, "big")) == "The answer is longer than 1 MiB.")
            #expect(await failure(of: request(server, "close"))?.isEmpty == false)
            var slow = request(server, "drip")
            slow.total = .milliseconds(300)
            #expect(await failure(of: slow)?.isEmpty == false)
            #expect(await failure(of: request(server, "200", scheme: "ftp"))?.isEmpty == false)
        }
    }

    @Test func `a certificate has to be of an authority that is known`() async throws {
        let files = try Certificates.files.get()
        try await MailServer.http([files.certificate, files.key]) { server in
            #expect(await failure(of: request(server, "200", scheme: "https"))?.contains("certificate") == true)
        }
    }
}
