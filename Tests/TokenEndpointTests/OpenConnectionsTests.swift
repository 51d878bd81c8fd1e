import NIOCore
import Synchronization
import TestSupport
import Testing
@testable import TokenEndpoint

@Suite("Places for connections")
struct OpenConnectionsTests {
    private static let get = "GET /one HTTP/1.1\r\nHost: r.example\r\n\r\n"
    private let gate = Gate()

    @Test func `a source has its number of connections, and a trusted proxy has no such limit`() async throws {
        let server = TestServer(maximum: 20, maximumPerSource: 3, trusted: ["10.0.0.0/8"], respond: gate.respond)
        let first = try #require(try await server.connect())
        for _ in 0..<2 { _ = try #require(try await server.connect()) }
        #expect(try await server.connect() == nil)
        #expect(try await server.connect(from: "203.0.113.10") != nil)
        for _ in 0..<10 { #expect(try await server.connect(from: "10.0.0.1") != nil) }
        #expect(server.metrics.text().contains(#"postern_connections_refused_total{limit="source"} 1"#))
        try await first.disconnect()
        #expect(try await server.connect() != nil, "a place that was left is free again")
    }

    @Test func `IPv6 connections count by their 64-bit network`() async throws {
        let server = TestServer(maximumPerSource: 1, respond: gate.respond)
        #expect(try await server.connect(from: "2001:db8:1:2::1") != nil)
        #expect(try await server.connect(from: "2001:db8:1:2:ffff::1") == nil)
        #expect(try await server.connect(from: "2001:db8:1:3::1") != nil)
    }

    @Test func `when all places are taken a newcomer gets one of the source that has the most`() async throws {
        let server = TestServer(maximum: 4, respond: gate.respond)
        var greedy: [TestConnection] = []
        for _ in 0..<3 { greedy.append(try #require(try await server.connect(from: "198.51.100.1"))) }
        let other = try #require(try await server.connect(from: "198.51.100.2"))
        #expect(try await server.connect(from: "203.0.113.9") != nil)
        try await eventually { greedy.contains { !$0.isOpen } }
        #expect(other.isOpen)
        #expect(!server.metrics.text().contains("\npostern_connections_dropped_total 0\n"))
    }

    @Test func `when all places are taken the source that has them gets no more`() async throws {
        let server = TestServer(maximum: 2, respond: gate.respond)
        let held = [
            try #require(try await server.connect(from: "198.51.100.1")),
            try #require(try await server.connect(from: "198.51.100.1")),
        ]
        #expect(try await server.connect(from: "198.51.100.1") == nil)
        #expect(held.map(\.isOpen) == [true, true])
        #expect(server.metrics.text().contains(#"postern_connections_refused_total{limit="process"} 1"#))
    }

    @Test func `no request that is being answered is given up for a newcomer`() async throws {
        let server = TestServer(maximum: 2, respond: gate.respond)
        gate.shut()
        var busy: [TestConnection] = []
        for _ in 0..<2 {
            let connection = try #require(try await server.connect(from: "198.51.100.1"))
            try await connection.send(Self.get)
            busy.append(connection)
        }
        try await eventually { gate.requests.count == 2 }
        #expect(try await server.connect(from: "203.0.113.9") == nil)
        #expect(busy.map(\.isOpen) == [true, true])
        gate.open()
        for connection in busy { try await connection.answers(1) }
    }

    @Test func `a request that has only begun to arrive is not slow yet`() async throws {
        let server = TestServer(respond: gate.respond)
        let (fresh, slow) = (try #require(try await server.connect()), try #require(try await server.connect()))
        for connection in [fresh, slow] {
            try await connection.send("POST /two HTTP/1.1\r\nHost: r.example\r\nContent-Length: 3\r\n\r\n")
        }
        try await slow.advance(.milliseconds(1001))
        try await fresh.fire(MakeRoomEvent())
        try await slow.fire(MakeRoomEvent())
        try await slow.closed()
        try await fresh.send("abc")
        try await fresh.answers(1)
    }
}
