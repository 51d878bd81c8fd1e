import HTTPTypes
import NIOCore
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

/// What must hold for every exchange of a connection, also for requests that never reach the responder.
///
/// - Answers `Expect: 100-continue` before the body is read (RFC 9110 §10.1.1): clients such as curl wait for it.
/// - Gives a body ``bodyTimeout`` to arrive, then answers 408 and closes (RX-02).
/// - Marks answers to requests that are no HTTP, which are given below the responder, as not to be stored.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// How long a body may take to arrive.
    static let bodyTimeout = TimeAmount.seconds(15)
    private static let checkInterval = TimeAmount.seconds(3)

    /// Set while a request's body is on its way and nothing was answered yet.
    private var receivingSince: NIODeadline?
    private var check: RepeatedTask?

    func handlerAdded(context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        if let codec = try? pipeline.handler(type: HTTP1ToHTTPServerCodec.self) {
            try? pipeline.addHandler(TargetHandler(), position: .before(codec))
        }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        check = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.checkInterval, delay: Self.checkInterval) {
            _ in
            bound.value.handler.checkBody(bound.value.context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        check?.cancel()
        check = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        check?.cancel()
        check = nil
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            receivingSince = .now()
            if head.headerFields[.expect]?.lowercased() == "100-continue" {
                context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
            }
        case .body: break
        case .end: receivingSince = nil
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data) else {
            context.write(data, promise: promise)
            return
        }
        receivingSince = nil
        if head.headerFields[.cacheControl] == nil {
            head.headerFields[.cacheControl] = "no-store"
            head.headerFields[.xContentTypeOptions] = "nosniff"
        }
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }

    private func checkBody(_ context: ChannelHandlerContext) {
        guard let since = receivingSince, NIODeadline.now() - since > Self.bodyTimeout else { return }
        receivingSince = nil
        let head = HTTPResponse(
            status: .requestTimeout,
            headerFields: [.connection: "close", .contentLength: "0", .cacheControl: "no-store"])
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        context.close(promise: nil)
    }
}
