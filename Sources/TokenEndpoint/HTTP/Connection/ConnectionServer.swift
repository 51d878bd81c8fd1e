import Glibc
import Logging
import NIOCore
package import NIOHTTP1
import NIOPosix
import NIOSSL
import ServiceLifecycle
import Synchronization

/// Answers one request from the address at the other end of its connection.
typealias Respond = @Sendable (Request, IPAddress?) async -> Answer

/// A listener for HTTP/1.1: binds, accepts within the limits of ``OpenConnections``, and drains at shutdown.
struct ConnectionServer: Service {
    let address: ListenAddress
    let connections: OpenConnections
    let metrics: TransportMetrics
    /// `nil` for plain HTTP.
    var tls: TLSIdentity?
    /// How long it goes on accepting when it is to stop, so that no proxy sends to a port that has just closed.
    /// `nil`: it closes at once, with what waits to be accepted, so that a proxy's check sees it.
    var stopsAfter: Duration?
    var onServing: @Sendable () -> Void = {}
    let logger: Logger
    let respond: Respond

    private let loops = ConnectionLoops()

    private static let backlog: Int32 = 1024
    /// Of each direction, in the kernel: without a bound a client that does not read makes the kernel buffer megabytes.
    private static let socketBuffer = 64 * 1024
    private static let bindAgainAfter = Duration.milliseconds(250)

    init(
        address: ListenAddress, connections: OpenConnections, metrics: TransportMetrics, tls: TLSIdentity? = nil,
        stopsAfter: Duration? = nil, logger: Logger, onServing: @escaping @Sendable () -> Void = {},
        respond: @escaping Respond
    ) {
        self.address = address
        self.connections = connections
        self.metrics = metrics
        self.tls = tls
        self.stopsAfter = stopsAfter
        self.logger = logger
        self.onServing = onServing
        self.respond = respond
    }

    /// Serves until graceful shutdown, and then until the last connection has ended, or until cancellation.
    func run() async throws {
        let listener = Listener()
        listener.use(try await bind())
        onServing()
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                while let channel = listener.current {
                    try? await channel.closeFuture.get()
                    // accept(2) may report an error of the network, which NIO takes for one of the listener.
                    if !listener.isStopped { await bindAgain(listener) }
                }
                await connections.empty()
            } onGracefulShutdown: {
                guard let stopsAfter else {
                    listener.stop()
                    return connections.drain()
                }
                if stopsAfter > .zero { connections.answerLastRequests() }
                Task {
                    try? await Task.sleep(for: stopsAfter)
                    await listener.drain(within: min(stopsAfter, .milliseconds(250)))
                    connections.drain()
                }
            }
        } onCancel: {
            listener.stop()
            connections.closeAll()
        }
    }

    private func bindAgain(_ listener: Listener) async {
        logger.error("the listener was closed by an error and is opened again", metadata: ["listen": "\(address)"])
        while !listener.isStopped {
            do {
                return listener.use(try await bind())
            } catch {
                logger.error("cannot listen", metadata: ["listen": "\(address)", "error": "\(error)"])
                try? await Task.sleep(for: Self.bindAgainAfter)
            }
        }
    }

    private func bind() async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(Self.socketBuffer))
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        AcceptHandler(connections: connections, metrics: metrics, logger: logger))
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.socketOption(.so_sndbuf), value: SocketOptionValue(Self.socketBuffer))
            .childChannelOption(
                .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: 16_384)
            )
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in channel.eventLoop.makeCompletedFuture { try setUp(channel) } }
            .bind(host: address.host, port: address.port).get()
    }

    /// TLS, the gate, the reader of HTTP/1.1, the handler.
    func setUp(_ channel: any Channel) throws {
        guard let connection = connections.connection(of: channel) else { throw ChannelError.ioOnClosedChannel }
        let pipeline = channel.pipeline.syncOperations
        if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls.context)) }
        let gate = InputGate()
        try pipeline.addHandler(gate)
        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: .requests)))
        try pipeline.addHandler(
            ConnectionHandler(
                respond: respond, loop: loops.loop(for: channel.eventLoop), gate: gate, connection: connection,
                isLast: connections.isStopping))
    }
}

extension NIOHTTPDecoderLimitConfiguration {
    /// Far below NIO's defaults: nothing here needs more.
    package static var requests: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 12 * 1024
        limits.maxHeaderListSize = 16 * 1024
        limits.maxHeaderFieldCount = 100
        return limits
    }
}

/// The channel that accepts, unless the server stops.
private final class Listener: Sendable {
    private struct State {
        var channel: (any Channel)?
        var isStopped = false
    }

    /// Enough to accept what waits when no more comes, on a machine that has time; a busy one gets it ten times.
    private static let acceptTime = Duration.milliseconds(50)
    private static let acceptTimes = 10

    private let state = Mutex(State())

    /// `nil` when the server stops.
    var current: (any Channel)? { state.withLock { $0.isStopped ? nil : $0.channel } }
    var isStopped: Bool { state.withLock { $0.isStopped } }

    func use(_ channel: any Channel) {
        let isStopped = state.withLock { state in
            state.channel = channel
            return state.isStopped
        }
        if isStopped { channel.close(promise: nil) }
    }

    /// Accepts the connections that wait, and those that the kernel is still making within a time, and closes. On a
    /// busy machine the last packet of a connection takes tens of milliseconds even from the same machine.
    func drain(within time: Duration) async {
        guard let channel = markStopped() else { return }
        await SocketFilter.refuseNewConnections(to: channel)
        for _ in 0..<Self.acceptTimes {
            try? await Task.sleep(for: max(time, Self.acceptTime))
            guard await Self.hasWaiting(channel) else { break }
        }
        try? await channel.close()
    }

    /// Whether the kernel holds connections that are not accepted yet (tcp(7), `TCP_INFO` of a listener).
    private static func hasWaiting(_ listener: any Channel) async -> Bool {
        guard let socket = listener as? any SocketOptionProvider else { return false }
        return (try? await socket.getTCPInfo().get().tcpi_unacked > 0) ?? false
    }

    /// Closes at once.
    func stop() {
        markStopped()?.close(promise: nil)
    }

    private func markStopped() -> (any Channel)? {
        state.withLock { state in
            state.isStopped = true
            return state.channel
        }
    }
}

/// Closes connections over the limits before anything is set up for them, and pauses when the system has no descriptor
/// left: the kernel would report the connection that waits again at once, for ever, and the event loop would do nothing
/// else.
private final class AcceptHandler: ChannelInboundHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel

    private static let pause = TimeAmount.milliseconds(100)
    private static let logInterval = TimeAmount.minutes(1)

    private let connections: OpenConnections
    private let metrics: TransportMetrics
    private let logger: Logger
    private var isPaused = false
    private var nextLog = NIODeadline.uptimeNanoseconds(0)

    init(connections: OpenConnections, metrics: TransportMetrics, logger: Logger) {
        self.connections = connections
        self.metrics = metrics
        self.logger = logger
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = unwrapInboundIn(data)
        if connections.admit(channel) { context.fireChannelRead(data) } else { channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else { return }
        guard !isPaused, let options = context.channel.syncOptions else { return }
        isPaused = true
        metrics.countAcceptPause()
        if nextLog <= .now() {
            nextLog = .now() + Self.logInterval
            logger.error("no new connection can be accepted", metadata: ["error": "\(error)"])
        }
        try? options.setOption(.autoRead, value: false)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.isPaused = false
            try? options.setOption(.autoRead, value: true)
        }
    }
}
