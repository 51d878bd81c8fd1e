import HTTPTypes
import NIOCore
import NIOHTTP1

/// One HTTP/1.1 connection: collects a request, hands it to the responder, writes the answer, takes the next.
///
/// - One request is answered at a time; what a client pipelines waits, undecoded where possible.
/// - Answers `Expect: 100-continue` before the body is read (RFC 9110 §10.1.1): clients such as curl wait for it.
/// - A body that grows beyond ``Request/maximumBodyBytes`` is handed over as it is and the connection closes after the answer.
/// - A body has ``bodyTimeout`` to arrive, then 408 (RX-02); a connection without a request closes after ``idleTimeout``.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPServerResponsePart

    static let bodyTimeout = TimeAmount.seconds(15)
    static let idleTimeout = TimeAmount.seconds(30)
    private static let checkInterval = TimeAmount.seconds(3)
    private static let maximumWaiting = 32

    private enum State {
        case idle
        case receiving(HTTPRequestHead, ByteBuffer)
        case answering
        case closed
    }

    private let responder: Responder
    private let executor: EventLoopExecutor
    private var state = State.idle
    /// When the state last changed.
    private var since = NIODeadline.now()
    /// Parts that arrived while a request was being answered; beyond ``maximumWaiting`` nothing more is read.
    private var waiting = CircularBuffer<HTTPServerRequestPart>()
    private var wantsRead = false
    /// The connection ends after the answer under way.
    private var isLast = false
    private var hasUnreadBody = false
    private var address: IPAddress?
    private var check: RepeatedTask?

    init(responder: Responder, executor: EventLoopExecutor) {
        self.responder = responder
        self.executor = executor
    }

    func handlerAdded(context: ChannelHandlerContext) {
        address = context.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        check = context.eventLoop.scheduleRepeatedTask(initialDelay: Self.checkInterval, delay: Self.checkInterval) {
            _ in
            bound.value.handler.checkTime(bound.value.context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop()
    }

    func channelActive(context: ChannelHandlerContext) {
        address = context.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch state {
        case .idle, .receiving: receive(part, context)
        case .answering: waiting.append(part)
        case .closed: break
        }
    }

    /// A client that pipelines is held back; one that waits for its answer costs no change of the event loop's interest.
    func read(context: ChannelHandlerContext) {
        if waiting.count > Self.maximumWaiting { wantsRead = true } else { context.read() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: finish(context, isCut: false)
        case ChannelEvent.inputClosed: finish(context, isCut: true)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// What is no HTTP gets 400, headers that are too long 431 (RFC 6585 §5); then the connection ends.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
        switch state {
        case .idle, .receiving:
            refuse(error == .headerOverflow ? .requestHeaderFieldsTooLarge : .badRequest, context)
        case .answering: isLast = true
        case .closed: break
        }
    }

    private func receive(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch (part, state) {
        case (.head(let head), .idle):
            since = .now()
            if head.headers.first(name: "expect")?.lowercased() == "100-continue" {
                let proceed = HTTPResponseHead(version: .http1_1, status: .continue)
                context.writeAndFlush(wrapOutboundOut(.head(proceed)), promise: nil)
            }
            state = .receiving(head, ByteBuffer())
        case (.body(var bytes), .receiving(let head, var body)):
            if body.readableBytes + bytes.readableBytes > Request.maximumBodyBytes {
                (isLast, hasUnreadBody) = (true, true)
                return answer(Request(head, isBodyTooLarge: true), context)
            }
            if body.readableBytes == 0 { body = bytes } else { body.writeBuffer(&bytes) }
            state = .receiving(head, body)
        case (.end, .receiving(let head, let body)):
            answer(Request(head, body: body), context)
        default:
            break  // the rest of a body that was not wanted
        }
    }

    private func answer(_ request: Request, _ context: ChannelHandlerContext) {
        state = .answering
        if !request.isKeepAlive { isLast = true }
        let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
        let (responder, address) = (responder, address)
        Task(executorPreference: executor) {
            let answer = await responder.respond(to: request, from: address)
            bound.value.handler.send(answer, to: request.method, bound.value.context)
        }
    }

    private func send(_ answer: Answer, to method: HTTPRequest.Method, _ context: ChannelHandlerContext) {
        guard case .answering = state else { return }
        context.write(wrapOutboundOut(.head(answer.head(isLast: isLast))), promise: nil)
        if method != .head, !answer.body.isEmpty {
            let body = context.channel.allocator.buffer(bytes: answer.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        }
        guard !isLast else { return end(context, mayHaveMore: hasUnreadBody) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        state = .idle
        since = .now()
        while let part = waiting.popFirst() {
            receive(part, context)
            if case .answering = state { return }
        }
        if wantsRead {
            wantsRead = false
            context.read()
        }
    }

    /// Answers without the responder and closes.
    private func refuse(_ status: HTTPResponse.Status, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(.head(Answer(status).head(isLast: true))), promise: nil)
        end(context, mayHaveMore: true)
    }

    /// Closes after the answer. Closing on input that was not read would reset the connection, and the client might lose the
    /// answer (RFC 9112 §9.6): then only our side closes, and ``checkTime(_:)`` ends the rest.
    private func end(_ context: ChannelHandlerContext, mayHaveMore: Bool = false) {
        state = .closed
        since = .now()
        waiting.removeAll()
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
            bound.value.close(mode: mayHaveMore ? .output : .all, promise: nil)
        }
    }

    /// No further request: now if there is none, or one that can no longer arrive; else after the answer.
    private func finish(_ context: ChannelHandlerContext, isCut: Bool) {
        switch state {
        case .receiving where !isCut, .answering: isLast = true
        case .idle, .receiving:
            state = .closed
            context.close(promise: nil)
        case .closed: if isCut { context.close(promise: nil) }
        }
    }

    private func checkTime(_ context: ChannelHandlerContext) {
        let age = NIODeadline.now() - since
        switch state {
        case .idle where age > Self.idleTimeout:
            state = .closed
            context.close(promise: nil)
        case .receiving where age > Self.bodyTimeout: refuse(.requestTimeout, context)
        case .closed: context.close(promise: nil)
        case .idle, .receiving, .answering: break
        }
    }

    private func stop() {
        state = .closed
        waiting.removeAll()
        check?.cancel()
        check = nil
    }
}
