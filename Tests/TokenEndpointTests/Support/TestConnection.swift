import Foundation
import HTTPTypes
import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
@testable import TokenEndpoint

/// Connections of one ``ConnectionServer`` without a socket: its own pipeline, on channels and event loops in memory.
struct TestServer: Sendable {
    let server: ConnectionServer
    var connections: OpenConnections { server.connections }
    let metrics = Metrics()

    init(
        maximum: Int = 100, maximumPerSource: Int = 100, trusted: [String] = [], respond: @escaping Respond
    ) {
        let metrics = TransportMetrics(self.metrics.registry)
        server = ConnectionServer(
            address: ListenAddress(host: "127.0.0.1", port: 0),
            connections: OpenConnections(
                maximum: maximum, maximumPerSource: maximumPerSource, trusted: trusted.compactMap { CIDR($0) },
                metrics: metrics, logger: quiet),
            metrics: metrics, logger: quiet, respond: respond)
    }

    /// Accepts a connection. - Returns: `nil` when it was refused.
    func connect(from address: String = "203.0.113.9") async throws -> TestConnection? {
        let channel = NIOAsyncTestingChannel()
        let peer = try SocketAddress(ipAddress: address, port: 50_000)
        channel.remoteAddress = peer
        guard connections.admit(channel) else { return nil }
        let server = server
        let reads = ReadCounter()
        try await channel.testingEventLoop.executeInContext {
            try channel.pipeline.syncOperations.addHandler(reads)
            try server.setUp(channel)
        }
        try await channel.connect(to: peer).get()
        return TestConnection(channel, reads)
    }
}

/// The client's end of a connection in memory. Time stands still unless it is moved.
final class TestConnection: Sendable {
    private let channel: NIOAsyncTestingChannel
    private let reads: ReadCounter
    private let received = Mutex("")

    fileprivate init(_ channel: NIOAsyncTestingChannel, _ reads: ReadCounter) {
        self.channel = channel
        self.reads = reads
    }

    /// Whether the server reads more from the socket when it may.
    func isRead() async throws -> Bool {
        let before = reads.count
        try await channel.testingEventLoop.executeInContext { [channel] in channel.read() }
        return reads.count > before
    }

    var isOpen: Bool { channel.isActive }

    /// All that was sent to the client so far.
    var text: String { received.withLock { $0 } }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await channel.writeInbound(ByteBuffer(bytes: bytes))
        try await settle()
    }

    /// Lets time pass.
    func advance(_ amount: TimeAmount) async throws {
        await channel.testingEventLoop.advanceTime(by: amount)
        try await settle()
    }

    /// What the kernel or the server tells the connection.
    func fire(_ event: some Sendable) async throws {
        try await channel.testingEventLoop.executeInContext { [channel] in
            channel.pipeline.fireUserInboundEventTriggered(event)
        }
        try await settle()
    }

    /// The client is gone.
    func disconnect() async throws {
        try? await channel.close().get()
        try await settle()
    }

    /// Runs what is due and takes what was written.
    func settle() async throws {
        await channel.testingEventLoop.run()
        while let part = try await channel.readOutbound(as: ByteBuffer.self) {
            received.withLock { $0 += String(buffer: part) }
        }
    }

    /// The status codes of the answers so far; each must be complete.
    var statuses: [Int] { HTTPText.answers(in: text).map(\.status) }

    /// Waits for so many complete answers.
    @discardableResult
    func answers(_ count: Int) async throws -> [HTTPText.Answer] {
        try await settle { HTTPText.answers(in: text).count >= count }
        return HTTPText.answers(in: text)
    }

    /// Waits until the server has closed.
    func closed() async throws {
        try await settle { !isOpen }
    }

    /// Waits until a condition holds, and takes all that was written until then.
    private func settle(_ condition: () -> Bool) async throws {
        let deadline = ContinuousClock.now + eventualDeadline
        while !condition() {
            guard ContinuousClock.now < deadline else { throw NeverHappened("the client got \(text)") }
            await Task.yield()
            try await settle()
        }
        try await settle()
    }
}

/// Stands where the socket is.
private final class ReadCounter: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = ByteBuffer

    private let counted = Atomic(0)
    var count: Int { counted.load(ordering: .relaxed) }

    func read(context: ChannelHandlerContext) {
        counted.add(1, ordering: .relaxed)
        context.read()
    }
}

/// A reader of answers that knows no more than the answers need.
enum HTTPText {
    struct Answer: Equatable {
        let status: Int
        /// Names in lower case.
        let headers: [String: String]
        let body: String
    }

    /// The complete answers of a text. Interim ones have no body, and behind the answer to a HEAD comes nothing.
    static func answers(in text: String) -> [Answer] {
        var answers: [Answer] = []
        var rest = text[...]
        while let end = rest.firstRange(of: "\r\n\r\n") {
            let lines = rest[..<end.lowerBound].components(separatedBy: "\r\n")
            let headers = Dictionary(
                lines.dropFirst().map { line in
                    let parts = line.split(separator: ":", maxSplits: 1)
                    return (parts[0].lowercased(), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
                }, uniquingKeysWith: { "\($0), \($1)" })
            let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            rest = rest[end.upperBound...]
            let length = headers["content-length"].flatMap { Int($0) } ?? 0
            let body = rest.utf8.prefix(length)
            guard body.count == length || rest.isEmpty else { break }
            answers.append(Answer(status: status, headers: headers, body: String(body) ?? ""))
            rest = rest[body.endIndex...]
        }
        return answers
    }
}
