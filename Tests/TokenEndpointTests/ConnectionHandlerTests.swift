import HTTPTypes
import NIOCore
import NIOHTTP1
import TestSupport
import Testing
@testable import TokenEndpoint

@Suite("Connections")
struct ConnectionHandlerTests {
    private static let get = "GET /one HTTP/1.1\r\nHost: r.example\r\n\r\n"
    private static let closing = "GET /last HTTP/1.1\r\nHost: r.example\r\nConnection: close\r\n\r\n"

    private static func post(_ body: String, _ headers: String = "") -> String {
        "POST /two HTTP/1.1\r\nHost: r.example\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private let gate = Gate()

    private func connect() async throws -> TestConnection {
        try #require(try await TestServer(respond: gate.respond).connect())
    }

    // MARK: Keeping and ending

    @Test func `a connection is kept for further requests`() async throws {
        let connection = try await connect()
        for count in 1...3 {
            try await connection.send(Self.get)
            let answer = try #require(try await connection.answers(count).last)
            #expect(answer.body == "GET /one 0")
            #expect(answer.headers["connection"] == nil)
        }
        #expect(connection.isOpen)
    }

    @Test(
        "a connection ends when the client wants its end",
        arguments: [
            closing, "GET /last HTTP/1.0\r\nHost: r.example\r\n\r\n",
            "GET /last HTTP/1.1\r\nHost: r.example\r\nConnection: CLOSE\r\n\r\n",
        ])
    func ends(_ request: String) async throws {
        let connection = try await connect()
        try await connection.send(request)
        #expect(try await connection.answers(1).last?.headers["connection"] == "close")
        try await connection.closed()
    }

    @Test func `what follows a last request is not read`() async throws {
        let connection = try await connect()
        try await connection.send(Self.closing + Self.get)
        try await connection.closed()
        #expect(connection.statuses == [200])
        #expect(gate.requests.count == 1)
    }

    @Test func `the answer to HEAD has the length of GET's and no body`() async throws {
        let connection = try await connect()
        try await connection.send("HEAD /one HTTP/1.1\r\nHost: r.example\r\n\r\n")
        let answer = try #require(try await connection.answers(1).last)
        #expect(answer.headers["content-length"] == "11")
        #expect(connection.text.hasSuffix("\r\n\r\n"))
        #expect(connection.isOpen)
    }

    // MARK: Pipelining

    @Test func `pipelined requests are answered in order and one at a time`() async throws {
        let connection = try await connect()
        try await connection.send(String(repeating: Self.get + Self.post("abc"), count: 25))
        let bodies = try await connection.answers(50).map(\.body)
        #expect(bodies == Array(repeating: ["GET /one 0", "POST /two 3"], count: 25).flatMap(\.self))
        #expect(gate.mostRunning == 1)
    }

    @Test func `while a request is being answered no further one is taken`() async throws {
        let connection = try await connect()
        gate.shut()
        try await connection.send(Self.get + Self.post("abc"))
        try await connection.send(String(repeating: Self.get, count: 100))
        try await eventually { gate.requests.count == 1 }
        try await connection.advance(.seconds(60))
        #expect(gate.requests.count == 1)
        #expect(connection.isOpen, "an answer may take longer than a client")
        gate.open()
        try await connection.answers(102)
        #expect(gate.mostRunning == 1)
    }

    @Test func `a client that pipelines is not read while it is being answered and something of it waits`() async throws
    {
        let connection = try await connect()
        #expect(try await connection.isRead())
        gate.shut()
        try await connection.send(Self.get)
        try await eventually { gate.requests.count == 1 }
        #expect(try await connection.isRead(), "it may say that it is gone")
        try await connection.send(Self.get)
        #expect(try await connection.isRead() == false)
        gate.open()
        try await connection.answers(2)
        #expect(try await connection.isRead())
    }

    @Test func `garbage behind a request does not cost its answer`() async throws {
        let connection = try await connect()
        gate.shut()
        try await connection.send(Self.get + "\u{1}\u{2}garbage\r\n\r\n")
        try await eventually { gate.requests.count == 1 }
        gate.open()
        try await connection.closed()
        #expect(connection.statuses.first == 200)
        #expect(gate.requests.count == 1)
    }

    // MARK: Bodies

    @Test func `a request may come in any pieces`() async throws {
        let request = Self.post("grant_type=x", "Content-Type: text/plain\r\n")
        for length in [1, 2, 3, 7, 64] {
            let connection = try await connect()
            let bytes = Array(request.utf8)
            for start in stride(from: 0, to: bytes.count, by: length) {
                try await connection.send(Array(bytes[start..<min(start + length, bytes.count)]))
            }
            #expect(try await connection.answers(1).last?.body == "POST /two 12")
        }
    }

    @Test func `a chunked body is put together`() async throws {
        let connection = try await connect()
        try await connection.send(
            "POST /two HTTP/1.1\r\nHost: r.example\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
        )
        #expect(try await connection.answers(1).last?.body == "POST /two 13")
        #expect(gate.requests.first.map { String(buffer: $0.body) } == "abc0123456789")
        try await connection.send(Self.get)
        try await connection.answers(2)
    }

    @Test func `a body of 64 KiB is read, one byte more is refused and ends the connection`() async throws {
        let connection = try await connect()
        try await connection.send(Self.post(String(repeating: "x", count: 65_536)))
        #expect(try await connection.answers(1).last?.body == "POST /two 65536")
        try await connection.send(Self.post(String(repeating: "x", count: 65_537)))
        let refused = try #require(try await connection.answers(2).last)
        #expect(refused.status == 413)
        #expect(refused.headers["connection"] == "close")
        try await connection.closed()
        #expect(gate.requests.last?.body.readableBytes == 0, "its bytes are not kept")
    }

    @Test func `a chunked body is refused as soon as it is too long, however much follows`() async throws {
        let connection = try await connect()
        try await connection.send("POST /two HTTP/1.1\r\nHost: r.example\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = "1000\r\n" + String(repeating: "x", count: 4096) + "\r\n"
        for _ in 0..<16 { try await connection.send(chunk) }
        #expect(gate.requests.isEmpty)
        try await connection.send(chunk)
        #expect(try await connection.answers(1).last?.status == 413)
        try await connection.closed()
    }

    @Test func `a client that waits for leave to send its body gets it first`() async throws {
        let connection = try await connect()
        try await connection.send(
            "POST /two HTTP/1.1\r\nHost: r.example\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n")
        #expect(try await connection.answers(1).map(\.status) == [100])
        #expect(gate.requests.isEmpty)
        try await connection.send("abc")
        #expect(try await connection.answers(2).map(\.body) == ["", "POST /two 3"])
    }

    // MARK: Limits of heads, and what is not HTTP

    /// A head that is otherwise fine.
    private static func head(_ fields: [String]) -> String {
        "GET /one HTTP/1.1\r\nHost: r.example\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    @Test(
        "a head has a hundred fields, a field 12 KiB and all of them 16 KiB at most",
        arguments: [
            (head((1...99).map { "X-\($0): 1" }), 200), (head((1...100).map { "X-\($0): 1" }), 431),
            (head(["X: " + String(repeating: "x", count: 12_000)]), 200),
            (head(["X: " + String(repeating: "x", count: 12_400)]), 431),
            (head((1...3).map { "X-\($0): " + String(repeating: "x", count: 5000) }), 200),
            (head((1...4).map { "X-\($0): " + String(repeating: "x", count: 5000) }), 431),
            (head(["X" + String(repeating: "x", count: 13_000) + ": 1"]), 431),
        ])
    func headLimits(_ head: String, _ status: Int) async throws {
        let connection = try await connect()
        try await connection.send(head)
        let answer = try #require(try await connection.answers(1).last)
        #expect(answer.status == status)
        #expect((answer.headers["connection"] == "close") == (status == 431))
        if status == 431 {
            try await connection.closed()
            #expect(gate.requests.isEmpty)
        }
    }

    @Test func `a request line is bounded as a head is`() async throws {
        let connection = try await connect()
        try await connection.send(
            "GET /" + String(repeating: "x", count: 20_000) + " HTTP/1.1\r\nHost: r.example\r\n\r\n")
        let status = try #require(try await connection.answers(1).last?.status)
        #expect([400, 414, 431].contains(status))
        try await connection.closed()
        #expect(gate.requests.isEmpty)
    }

    @Test(
        "what is not HTTP gets 400 and the end of the connection",
        arguments: [
            "nonsense\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : r.example\r\n\r\n", "GET / HTTP/1.1\r\nX: a\u{0}b\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: r.example\r\nContent-Length: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: r.example\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: r.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: r.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: r.example\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "POST / HTTP/1.1\r\nHost: r.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}",
        ])
    func noHTTP(_ text: String) async throws {
        let connection = try await connect()
        try await connection.send(text)
        let answer = try #require(try await connection.answers(1).last)
        #expect(answer.status == 400)
        #expect(answer.headers["connection"] == "close")
        #expect(answer.body == "")
        try await connection.closed()
        #expect(gate.requests.isEmpty)
    }

    // MARK: Time

    @Test func `a head has ten seconds from its first byte, however often a byte comes`() async throws {
        let connection = try await connect()
        try await connection.advance(.seconds(15))
        let bytes = Array(Self.get.utf8)
        for index in 0..<10 {
            try await connection.send([bytes[index]])
            #expect(connection.statuses == [])
            try await connection.advance(.seconds(1))
        }
        try await connection.send([bytes[10]])
        try await connection.advance(.seconds(2))
        #expect(try await connection.answers(1).last?.status == 408)
        try await connection.closed()
        #expect(gate.requests.isEmpty)
    }

    @Test func `a body has fifteen seconds from the end of its head, however often a byte comes`() async throws {
        let connection = try await connect()
        try await connection.send("POST /two HTTP/1.1\r\nHost: r.example\r\nContent-Length: 100\r\n\r\n")
        for _ in 0..<15 {
            try await connection.send("x")
            #expect(connection.statuses == [])
            try await connection.advance(.seconds(1))
        }
        try await connection.advance(.seconds(2))
        #expect(try await connection.answers(1).last?.status == 408)
        try await connection.closed()
    }

    @Test func `a connection without a request ends after 75 seconds, and a request begins them anew`() async throws {
        let connection = try await connect()
        try await connection.advance(.seconds(74))
        try await connection.send(Self.get)
        try await connection.answers(1)
        try await connection.advance(.seconds(74))
        #expect(connection.isOpen)
        try await connection.advance(.seconds(3))
        try await connection.closed()
        #expect(connection.statuses == [200], "it ends without a word")
    }

    @Test func `a trusted proxy's connection is kept for longer than balancers keep theirs`() async throws {
        let server = TestServer(trusted: ["203.0.113.0/24"]) { _, _ in Answer(.ok) }
        let connection = try #require(try await server.connect())
        try await connection.advance(.seconds(619))
        #expect(connection.isOpen)
        try await connection.advance(.seconds(3))
        try await connection.closed()
    }

    @Test func `one timer serves the connections of an event loop, and stops with the last one`() async throws {
        let connection = try await connect()
        try await connection.disconnect()
        try await connection.advance(.hours(1))
        #expect(!connection.isOpen)
    }

    // MARK: The client, the server and the kernel

    @Test func `a client that has said all still gets its answers, and then the end`() async throws {
        let connection = try await connect()
        gate.shut()
        try await connection.send(Self.get + Self.post("abc"))
        try await eventually { gate.requests.count == 1 }
        try await connection.fire(ChannelEvent.inputClosed)
        #expect(connection.isOpen)
        gate.open()
        try await connection.closed()
        #expect(connection.statuses == [200, 200])
    }

    @Test(arguments: ["", "GET /one HT", "POST /two HTTP/1.1\r\nHost: r.example\r\nContent-Length: 5\r\n\r\nab"])
    func `a client that has said all without a complete request gets the end, and no answer but 400`(_ text: String)
        async throws
    {
        let connection = try await connect()
        if !text.isEmpty { try await connection.send(text) }
        try await connection.fire(ChannelEvent.inputClosed)
        try await connection.closed()
        #expect(connection.statuses == (text.isEmpty ? [] : [400]))
        #expect(gate.requests.isEmpty)
    }

    @Test func `a client that goes while it is being answered disturbs nothing`() async throws {
        let server = TestServer(respond: gate.respond)
        let connection = try #require(try await server.connect())
        gate.shut()
        try await connection.send(Self.get)
        try await eventually { gate.requests.count == 1 }
        try await connection.disconnect()
        gate.open()
        try await connection.settle()
        #expect(connection.text == "")
        let next = try #require(try await server.connect())
        try await next.send(Self.get)
        try await next.answers(1)
    }

    @Test func `a server that stops soon ends idle connections, and others after the answer under way`() async throws {
        let server = TestServer(respond: gate.respond)
        let (idle, busy) = (try #require(try await server.connect()), try #require(try await server.connect()))
        gate.shut()
        try await busy.send(Self.get + Self.get)
        try await eventually { gate.requests.count == 1 }
        server.connections.drain()
        try await idle.advance(.milliseconds(499))
        #expect(idle.isOpen, "a request may be on its way")
        try await idle.advance(.milliseconds(1))
        try await idle.closed()
        #expect(try await server.connect() == nil)
        #expect(busy.isOpen)
        gate.open()
        try await busy.closed()
        let answers = HTTPText.answers(in: busy.text)
        #expect(answers.map(\.status) == [200])
        #expect(answers.last?.headers["connection"] == "close")
        await server.connections.empty()
    }
}
