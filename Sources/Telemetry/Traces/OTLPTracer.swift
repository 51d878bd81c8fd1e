public import CoreMetrics
public import Tracing

/// A tracer whose spans ``SpanExporter`` posts to a receiver of the OpenTelemetry protocol.
///
/// A span below another belongs to its trace and is recorded with it. A span on top begins a trace of its own, and is
/// recorded with the probability ``ratio``: by chance, never by an id, which a caller may have chosen.
public final class OTLPTracer: Tracer {
    public typealias Span = RecordedSpan

    let buffer: SpanBuffer
    private let ratio: Double

    /// - Parameters:
    ///   - ratio: the share of traces that is recorded, 0 to 1.
    ///   - metrics: counts spans by what came of them.
    public init(ratio: Double, metrics: any MetricsFactory) {
        self.ratio = ratio
        buffer = SpanBuffer(metrics: metrics)
    }

    /// Whether a trace that begins here is to be recorded.
    public func samples() -> Bool { ratio >= 1 || (ratio > 0 && Double.random(in: 0..<1) < ratio) }

    public func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> RecordedSpan {
        var context = context()
        let parent = context.trace
        let trace = TraceContext(
            traceID: parent?.traceID ?? TraceContext.randomBytes(16), spanID: TraceContext.randomBytes(8),
            isSampled: parent?.isSampled ?? samples())
        context.trace = trace
        return RecordedSpan(
            operationName, context, trace, parent: parent?.spanID, kind: kind,
            start: trace.isSampled ? instant().nanosecondsSinceEpoch : 0, buffer: buffer)
    }

    /// Exports soon.
    public func forceFlush() { buffer.wake() }

    /// Reads `traceparent`.
    public func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        if let trace = extractor.extract(key: "traceparent", from: carrier).flatMap(TraceContext.init(traceparent:)) {
            context.trace = trace
        }
    }

    /// Writes `traceparent`.
    public func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        if let trace = context.trace { injector.inject(trace.traceparent, forKey: "traceparent", into: &carrier) }
    }
}
