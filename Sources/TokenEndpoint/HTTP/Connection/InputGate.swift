package import NIOCore

/// Stands before the HTTP decoder and gives it bytes only while ``ConnectionHandler`` can take a request.
///
/// The decoder decodes all it is given, and a small request becomes many times its size in memory. So bytes go to the
/// decoder in slices of ``sliceSize``, none while a request is being answered, and the socket is not read while any are
/// left: a client that pipelines costs one read buffer and the requests of one slice.
package final class InputGate: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = Never
    package typealias OutboundOut = Never

    private static let sliceSize = 2048

    private enum State {
        case open
        /// A request is being answered.
        case paused
        /// The connection is ending: what arrives is dropped.
        case discarding
    }

    private var state = State.open
    private var pending: ByteBuffer?
    /// The socket was not read because of ``pending``.
    private var wantsRead = false
    /// The client has closed its side; passed on after ``pending`` was given to the decoder.
    private var hasEnded = false
    private var isFeeding = false
    private var context: ChannelHandlerContext?
    /// Called before bytes go to the decoder.
    var onInput: () -> Void = {}

    package init() {}

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        pending = nil
        onInput = {}
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard state != .discarding else { return }
        var bytes = unwrapInboundIn(data)
        if state == .open, pending == nil, bytes.readableBytes <= Self.sliceSize {
            onInput()
            return context.fireChannelRead(data)
        }
        if pending == nil { pending = bytes } else { pending?.writeBuffer(&bytes) }
        feed(context)
    }

    package func read(context: ChannelHandlerContext) {
        if pending == nil { context.read() } else { wantsRead = true }
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent, pending != nil { return hasEnded = true }
        context.fireUserInboundEventTriggered(event)
    }

    /// Holds bytes back from now on.
    func pause() {
        if state == .open { state = .paused }
    }

    /// Passes arrived bytes to the decoder, until ``pause()``.
    func resume() {
        guard state == .paused else { return }
        state = .open
        if let context { feed(context) }
    }

    /// Drops all bytes that have arrived or will arrive.
    func discard() {
        state = .discarding
        pending = nil
        if let context { readOn(context) }
    }

    private func feed(_ context: ChannelHandlerContext) {
        guard !isFeeding else { return }
        isFeeding = true
        defer { isFeeding = false }
        while state == .open, let slice = nextSlice() {
            onInput()
            context.fireChannelRead(wrapInboundOut(slice))
        }
        if pending == nil { readOn(context) }
    }

    private func nextSlice() -> ByteBuffer? {
        guard var bytes = pending else { return nil }
        let slice = bytes.readSlice(length: min(Self.sliceSize, bytes.readableBytes))
        pending = bytes.readableBytes > 0 ? bytes : nil
        return slice
    }

    private func readOn(_ context: ChannelHandlerContext) {
        if hasEnded {
            hasEnded = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
        if wantsRead {
            wantsRead = false
            context.read()
        }
    }
}
