import Synchronization
public import Tracing

/// A span of ``OTLPTracer``; one that is not sampled keeps nothing.
public final class RecordedSpan: Tracing.Span {
    private struct State: Sendable {
        var name: String
        var attributes = SpanAttributes()
        var status: SpanStatus?
        var hasEnded = false
    }

    /// The context of the spans below this one.
    public let context: ServiceContext
    /// The place in the trace.
    public let trace: TraceContext
    private let parent: [UInt8]?
    private let kind: SpanKind
    private let start: UInt64
    private let state: Mutex<State>
    private let buffer: SpanBuffer

    init(
        _ name: String, _ context: ServiceContext, _ trace: TraceContext, parent: [UInt8]?, kind: SpanKind,
        start: UInt64, buffer: SpanBuffer
    ) {
        self.context = context
        self.trace = trace
        self.parent = parent
        self.kind = kind
        self.start = start
        self.buffer = buffer
        state = Mutex(State(name: name))
    }

    public var isRecording: Bool { trace.isSampled && !state.withLock { $0.hasEnded } }

    public var operationName: String {
        get { state.withLock { $0.name } }
        set { state.withLock { $0.name = newValue } }
    }

    public var attributes: SpanAttributes {
        get { state.withLock { $0.attributes } }
        set { if trace.isSampled { state.withLock { $0.attributes = newValue } } }
    }

    public func setStatus(_ status: SpanStatus) {
        state.withLock { $0.status = status }
    }

    /// An error's text may hold what a caller sent, so only the status says that there was one.
    public func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        setStatus(SpanStatus(code: .error))
    }

    /// Events and links are not exported: no code of this product makes any.
    public func addEvent(_ event: SpanEvent) {}
    public func addLink(_ link: SpanLink) {}

    public func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        guard trace.isSampled else { return }
        let end = instant().nanosecondsSinceEpoch
        let ended = state.withLock { state -> State? in
            guard !state.hasEnded else { return nil }
            state.hasEnded = true
            return state
        }
        guard let ended else { return }
        buffer.add(
            FinishedSpan(
                trace: trace, parent: parent, name: ended.name, kind: kind, start: start, end: max(end, start),
                attributes: ended.attributes, status: ended.status))
    }
}

/// What is exported of a span.
struct FinishedSpan: Sendable {
    let trace: TraceContext
    let parent: [UInt8]?
    let name: String
    let kind: SpanKind
    /// Nanoseconds since the epoch.
    let start: UInt64
    let end: UInt64
    let attributes: SpanAttributes
    let status: SpanStatus?
}
