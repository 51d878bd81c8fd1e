import CoreMetrics
import Synchronization

/// Finished spans on their way to the exporter. Never waits: what finds no room is counted and dropped.
final class SpanBuffer: Sendable {
    static let capacity = 4096
    /// So many make the exporter begin at once.
    static let batch = 512

    private let spans = Mutex<[FinishedSpan]>([])
    private let signal: AsyncStream<Void>.Continuation
    /// A batch is ready, or time has passed.
    let signals: AsyncStream<Void>
    private let exported: Counter
    private let failed: Counter
    private let dropped: Counter

    init(metrics: any MetricsFactory) {
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        func counter(_ outcome: String) -> Counter {
            Counter(label: "postern_trace_spans_total", dimensions: [("outcome", outcome)], factory: metrics)
        }
        (exported, failed, dropped) = (counter("exported"), counter("failed"), counter("dropped"))
    }

    func add(_ span: FinishedSpan) {
        let count = spans.withLock { spans -> Int? in
            guard spans.count < Self.capacity else { return nil }
            spans.append(span)
            return spans.count
        }
        guard let count else { return dropped.increment() }
        if count == Self.batch { wake() }
    }

    func wake() { signal.yield() }
    func finish() { signal.finish() }

    func take() -> [FinishedSpan] {
        spans.withLock { spans in
            let taken = Array(spans.prefix(Self.batch))
            spans.removeFirst(taken.count)
            return taken
        }
    }

    func count(_ spans: Int, wereTaken: Bool) { (wereTaken ? exported : failed).increment(by: spans) }
}
