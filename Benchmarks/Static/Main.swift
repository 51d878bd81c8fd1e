import NIOCore
import NIOHTTP1
import NIOPosix

/// Gives the answer of a file, header fields and body, to every request: what sockets and NIO's HTTP codec cost by
/// themselves. Usage: BenchStatic PORT < FILE
@main
struct Main {
    static func main() async throws {
        var file: [UInt8] = []
        while let line = readLine(strippingNewline: false) { file += line.utf8 }
        let answer = String(decoding: file, as: UTF8.self)
        guard CommandLine.arguments.count == 2, let port = Int(CommandLine.arguments[1]),
            let end = answer.firstRange(of: "\r\n\r\n")
        else { fatalError("usage: BenchStatic PORT < FILE") }
        var fields = HTTPHeaders()
        for line in answer[..<end.lowerBound].split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { fatalError("no field: \(line)") }
            fields.add(name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
        }
        let body = ByteBuffer(string: String(answer[end.upperBound...]))
        fields.add(name: "Content-Length", value: "\(body.readableBytes)")
        let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: fields)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
                    try channel.pipeline.syncOperations.addHandler(Answering(head: head, body: body))
                }
            }
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: port).get()
        try await server.closeFuture.get()
    }
}

/// Answers when a request has ended, and closes the connection if the request says so.
private final class Answering: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let head: HTTPResponseHead
    private let body: ByteBuffer
    private var isLast = false

    init(head: HTTPResponseHead, body: ByteBuffer) {
        (self.head, self.body) = (head, body)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request): isLast = !request.isKeepAlive
        case .body: break
        case .end:
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            if isLast { context.close(promise: nil) }
        }
    }
}
