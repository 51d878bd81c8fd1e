import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// What must hold for every exchange of a connection, also for requests that never reach the responder.
///
/// Answers `Expect: 100-continue` before the body is read (RFC 9110 §10.1.1): clients such as curl wait for it. Marks answers to
/// requests that are no HTTP, which are given below the responder, as not to be stored.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data), head.headerFields[.expect]?.lowercased() == "100-continue" {
            context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = unwrapOutboundIn(data), head.headerFields[.cacheControl] == nil else {
            context.write(data, promise: promise)
            return
        }
        head.headerFields[.cacheControl] = "no-store"
        head.headerFields[.xContentTypeOptions] = "nosniff"
        context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
}
