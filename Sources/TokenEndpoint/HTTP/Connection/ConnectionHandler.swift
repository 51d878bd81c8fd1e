import HTTPTypes
import NIOCore
import NIOHTTP1

/// One HTTP/1.1 connection: collects a request, hands it to the responder, writes the answer, takes the next.
///
/// - One answer at a time: the next request is taken when the former answer was handed to the kernel. A client that
///   does not read its answer for ``sendTimeout`` is closed, so a connection holds one request and one answer at most.
/// - Answers `Expect: 100-continue` before the body is read (RFC 9110 §10.1.1): clients such as curl wait for it.
/// - A body that grows beyond ``Request/maximumBodyBytes`` is handed over as it is and the connection closes after the
///   answer.
/// - A head has ``headTimeout`` to arrive from its first byte, a body ``bodyTimeout``, then 408; a connection without a
///   request closes after its ``OpenConnection/keepAlive``.
///
/// Used on its event loop only.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    static let headTimeout = TimeAmount.seconds(10)
    static let bodyTimeout = TimeAmount.seconds(15)
    static let sendTimeout = TimeAmount.seconds(15)
    /// How long the client may take to read the last answer after our side has closed.
    private static let closeTimeout = TimeAmount.seconds(2)
    /// How long a connection without a request may stay when the server stops.
    private static let lastRequestTime = TimeAmount.milliseconds(500)
    /// A request that arrives for longer is slow enough to be dropped when there are too many connections.
    private static let slowAfter = TimeAmount.seconds(1)

    private enum State {
        case idle
        case receiving(HTTPRequestHead, ByteBuffer)
        case answering
        case sending
        case closed
    }

    private let respond: Respond
    private let loop: ConnectionLoop
    private let gate: InputGate
    private let connection: OpenConnection
    private let eventLoop: any EventLoop
    private let end = ConnectionEnd()
    private var context: ChannelHandlerContext?
    private var state = State.idle
    /// When the state last changed.
    private var since: NIODeadline
    /// When the first byte of the head that is arriving came.
    private var headSince: NIODeadline?
    /// The rest of the slice that ended with the request being answered.
    private var waiting = CircularBuffer<HTTPServerRequestPart>()
    /// The connection ends after the answer under way, or after the next.
    private var isLast: Bool
    private var hasUnreadInput = false
    /// The client has said all it wants to say.
    private var inputEnded = false

    init(
        respond: @escaping Respond, loop: ConnectionLoop, gate: InputGate, connection: OpenConnection,
        isLast: Bool = false
    ) {
        self.respond = respond
        self.loop = loop
        self.gate = gate
        self.connection = connection
        self.isLast = isLast
        eventLoop = connection.channel.eventLoop
        since = eventLoop.now
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        gate.onInput = { [unowned self] in noteInput() }
        loop.timer.value.add(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        stop()
    }

    func channelInactive(context: ChannelHandlerContext) {
        stop()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch state {
        case .idle, .receiving: receive(part)
        case .answering, .sending: waiting.append(part)
        case .closed: break
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: quiesce()
        case is MakeRoomEvent: makeRoom()
        case is LastRequestEvent:
            isLast = true
            end.signal()
        case ChannelEvent.inputClosed: inputClosed()
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// Bytes that are not HTTP get 400, headers that are too long 431 (RFC 6585 §5); then the connection ends.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else { return close() }
        switch state {
        case .idle, .receiving: refuse(error == .headerOverflow ? .requestHeaderFieldsTooLarge : .badRequest)
        case .answering, .sending: (isLast, hasUnreadInput) = (true, true)
        case .closed: break
        }
    }

    private func noteInput() {
        if case .idle = state, headSince == nil { headSince = eventLoop.now }
    }

    private func receive(_ part: HTTPServerRequestPart) {
        switch (part, state) {
        case (.head(let head), .idle):
            headSince = nil
            since = eventLoop.now
            // Only `chunked` frames a body here; one in another coding besides cannot be read (RFC 9112 §6.1).
            let coding = head.headers.first(name: "transfer-encoding")?.trimmingSpaces.lowercased()
            if let coding, coding != "chunked" { return refuse(.badRequest) }
            if let context, head.headers.first(name: "expect")?.lowercased() == "100-continue" {
                let proceed = context.channel.allocator.buffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
                context.writeAndFlush(wrapOutboundOut(proceed), promise: nil)
            }
            state = .receiving(head, ByteBuffer())
        case (.body(var bytes), .receiving(let head, var body)):
            if body.readableBytes + bytes.readableBytes > Request.maximumBodyBytes {
                (isLast, hasUnreadInput) = (true, true)
                return answer(Request(head, isBodyTooLarge: true))
            }
            if body.readableBytes == 0 { body = bytes } else { body.writeBuffer(&bytes) }
            state = .receiving(head, body)
        case (.end, .receiving(let head, let body)):
            answer(Request(head, body: body, end: end))
        default:
            break  // the rest of a body that was not wanted
        }
    }

    private func answer(_ request: Request) {
        guard context != nil else { return }
        state = .answering
        connection.isBusy()
        gate.pause()
        if !request.isKeepAlive { isLast = true }
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let (respond, address, eventLoop) = (respond, connection.address, eventLoop)
        Task(executorPreference: loop.executor) {
            let departure = Departure()
            let answer = await Departure.$current.withValue(departure) { await respond(request, address) }
            // The executor is a preference: after an await this may be any thread.
            if eventLoop.inEventLoop {
                bound.value.send(answer, to: request.method, departure)
            } else {
                eventLoop.execute { bound.value.send(answer, to: request.method, departure) }
            }
        }
    }

    private func send(_ answer: Answer, to method: HTTPRequest.Method, _ departure: Departure) {
        guard case .answering = state, let context else { return departure.left() }
        if inputEnded, waiting.isEmpty { isLast = true }
        state = .sending
        since = eventLoop.now
        write(answer, hasBody: method != .head, departure: departure, context)
    }

    /// Answers without the responder and closes.
    private func refuse(_ status: HTTPResponse.Status) {
        guard let context else { return }
        gate.pause()
        state = .sending
        since = eventLoop.now
        (isLast, hasUnreadInput) = (true, true)
        write(Answer(status), context)
    }

    /// Goes on when the kernel has the whole answer.
    private func write(
        _ answer: Answer, hasBody: Bool = true, departure: Departure? = nil, _ context: ChannelHandlerContext
    ) {
        let message = answer.encoded(hasBody: hasBody, isLast: isLast, context.channel.allocator)
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            departure?.left()
            if case .success = result { self.sent() } else { self.close() }
        }
        context.writeAndFlush(wrapOutboundOut(message), promise: promise)
    }

    private func sent() {
        guard case .sending = state, let context else { return }
        since = eventLoop.now
        guard !isLast else {
            // Closing on input that was not read would reset the connection, and the client might lose the answer
            // (RFC 9112 §9.6): then only our side closes, and ``checkTime(_:)`` ends the rest.
            state = .closed
            waiting.removeAll()
            gate.discard()
            return context.close(mode: hasUnreadInput ? .output : .all, promise: nil)
        }
        state = .idle
        connection.isWaiting()
        while let part = waiting.popFirst() {
            receive(part)
            if case .answering = state { return }
        }
        if inputEnded { return close() }
        gate.resume()
    }

    /// The server stops: the connection ends after the answer under way, or after the next when none is.
    /// A request may be on its way, and a proxy that has sent one does not send it elsewhere; so a connection without
    /// one ends a little later.
    private func quiesce() {
        isLast = true
        end.signal()
        guard isUnused else { return }
        eventLoop.assumeIsolated().scheduleTask(in: Self.lastRequestTime) { [weak self] in
            if let self, isUnused { close() }
        }
    }

    /// No byte of a request is there.
    private var isUnused: Bool {
        if case .idle = state { headSince == nil } else { false }
    }

    /// There are too many connections: one that waits for its client goes.
    private func makeRoom() {
        switch state {
        case .idle: close()
        case .receiving where eventLoop.now - since > Self.slowAfter: close()
        case .receiving, .answering, .sending, .closed: break
        }
    }

    /// Complete requests are still answered, though not held any longer; an incomplete one can no longer be completed.
    private func inputClosed() {
        inputEnded = true
        end.signal()
        switch state {
        case .idle, .receiving, .closed: close()
        case .answering, .sending: break
        }
    }

    /// Called once a second.
    func checkTime(_ now: NIODeadline) {
        let age = now - since
        switch state {
        case .idle where age > connection.keepAlive: close()
        case .idle: if let headSince, now - headSince > Self.headTimeout { refuse(.requestTimeout) }
        case .receiving where age > Self.bodyTimeout: refuse(.requestTimeout)
        case .sending where age > Self.sendTimeout: close()
        case .closed where age > Self.closeTimeout: close()
        case .receiving, .answering, .sending, .closed: break
        }
    }

    private func close() {
        state = .closed
        waiting.removeAll()
        context?.close(promise: nil)
    }

    private func stop() {
        end.signal()
        state = .closed
        waiting.removeAll()
        loop.timer.value.remove(self)
        context = nil
    }
}
