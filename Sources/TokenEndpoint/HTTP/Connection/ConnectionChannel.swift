import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Sets up an accepted connection: HTTP/1.1 codec, then ``ConnectionHandler``. Stands in for Hummingbird's own `HTTP1Channel`, whose
/// streams between event loop and task cost more than the rest of a request; see docs/decisions/0017.
struct ConnectionChannel: ServerChildChannel {
    /// The connection, from setup to close.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
    }

    let responder: Responder
    let executors: EventLoopExecutors

    // Far below NIO's defaults: nothing here needs more (RX-04).
    private static var limits: NIOHTTPDecoderLimitConfiguration {
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = 12 * 1024
        limits.maxHeaderListSize = 16 * 1024
        limits.maxHeaderFieldCount = 100
        return limits
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: Self.limits)
            try pipeline.addHandler(
                ConnectionHandler(responder: responder, executor: executors.executor(for: channel.eventLoop)))
            return Value(channel: channel)
        }
    }

    /// Lives as long as the connection. A cancelled task, at the end of the shutdown's grace, closes it.
    func handle(value: Value, logger: Logger) async {
        await withTaskCancellationHandler {
            try? await value.channel.closeFuture.get()
        } onCancel: {
            value.channel.close(promise: nil)
        }
    }
}
