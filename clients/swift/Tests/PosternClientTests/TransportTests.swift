import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The transport", .timeLimit(.minutes(1)))
struct TransportTests {
    private func client(_ server: RawServer) throws -> PosternClient {
        var configuration = PosternConfiguration(origin: server.url, clientID: "app")
        configuration.store = MemoryStore()
        configuration.key = .none
        return try PosternClient(configuration)
    }

    @Test(arguments: ["Transfer-Encoding: chunked", "X: no length", "Content-Length: 99999999999"])
    func `a body without end is given up once it is too large`(field: String) async throws {
        let sent = Counter()
        let server = try RawServer { connection in
            var isTaken = connection.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\(field)\r\n\r\n")
            let chunk = String(repeating: "x", count: 65_536)
            while isTaken, sent.value < 100_000_000 {
                // As fast as a good network.
                usleep(1_000)
                isTaken = connection.send(field.hasPrefix("T") ? "10000\r\n\(chunk)\r\n" : chunk)
                if isTaken { sent.add(65_536) }
            }
        }
        await expect(.unavailable(retryAfter: nil)) { try await client(server).appInfo() }
        #expect(sent.value < 50_000_000)
    }

    @Test func `a redirect is an answer, and is not followed`() async throws {
        let visits = Counter()
        let other = try RawServer { connection in
            visits.add(1)
            _ = connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        let there = other.url
        let server = try RawServer {
            _ = $0.send("HTTP/1.1 307 Go\r\nLocation: \(there)/\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        }
        var request = URLRequest(url: server.url)
        request.httpMethod = "POST"
        request.httpBody = Data("refresh_token=x".utf8)
        let (_, response) = try await URLSessionTransport().send(request)
        #expect(response.statusCode == 307 && visits.value == 0)
    }

    @Test func `an answer that trickles is given up when its time is over`() async throws {
        let server = try RawServer { connection in
            var isTaken = connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while isTaken {
                usleep(10_000)
                isTaken = connection.send("1\r\nx\r\n")
            }
        }
        let limit = AnswerLimit(bytes: 1_000_000, time: .milliseconds(200))
        await #expect(throws: URLError(.timedOut)) {
            try await AnswerLimit.$current.withValue(limit) {
                try await URLSessionTransport().send(URLRequest(url: server.url))
            }
        }
    }

    @Test func `a question for a password is an answer`() async throws {
        let server = try RawServer {
            _ = $0.send(
                "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 2\r\n"
                    + "Connection: close\r\n\r\nhi")
        }
        let (body, response) = try await URLSessionTransport().send(URLRequest(url: server.url))
        #expect(response.statusCode == 401 && body == Data("hi".utf8))
    }

    @Test(arguments: ["X-Field: \(String(repeating: "y", count: 1000))\r\n", String(repeating: "y", count: 1000)])
    func `a head without end is no answer`(piece: String) async throws {
        let server = try RawServer { connection in
            var isTaken = connection.send("HTTP/1.1 200 OK\r\nX: ")
            while isTaken { isTaken = connection.send(piece) }
        }
        await #expect(throws: URLError.self) { try await URLSessionTransport().send(URLRequest(url: server.url)) }
    }

    @Test func `bodies of any number of pieces come whole`() async throws {
        let server = try RawServer { connection in
            _ = connection.send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n")
            for _ in 0..<300 { _ = connection.send(String(repeating: "x", count: 1000)) }
        }
        let (body, response) = try await URLSessionTransport().send(URLRequest(url: server.url))
        #expect(response.statusCode == 200 && body == Data(String(repeating: "x", count: 300_000).utf8))
    }

    @Test func `a caller that is cancelled does not wait`() async throws {
        let asked = Gate()
        let server = try RawServer { connection in
            Task { await asked.open() }
            connection.waitForEnd()
        }
        let url = server.url
        let call = Task { try await URLSessionTransport().send(URLRequest(url: url)) }
        await asked.pass()
        call.cancel()
        await #expect(throws: (any Error).self) { try await call.value }
    }
}
