public import ServiceLifecycle

/// Posts finished spans to a receiver, in batches: when one is full, at least once a second, and once more at the end.
/// What the receiver does not take is counted and gone, so that a receiver that is down costs no memory.
public struct SpanExporter: Service {
    /// Posts a body of `application/json`. - Returns: whether the receiver took it.
    public typealias Post = @Sendable (_ body: [UInt8]) async -> Bool

    private let buffer: SpanBuffer
    private let encoder: OTLPEncoder
    private let post: Post
    private static let interval = Duration.seconds(1)

    /// - Parameter version: of this program.
    public init(_ tracer: OTLPTracer, version: String, post: @escaping Post) {
        buffer = tracer.buffer
        encoder = OTLPEncoder(version: version)
        self.post = post
    }

    /// Exports until graceful shutdown, then what is left.
    public func run() async {
        await withGracefulShutdownHandler {
            await withTaskGroup { tasks in
                tasks.addTask {
                    while (try? await Task.sleep(for: Self.interval)) != nil { buffer.wake() }
                }
                for await _ in buffer.signals { await export() }
                tasks.cancelAll()
            }
            await export()
        } onGracefulShutdown: {
            buffer.finish()
        }
    }

    private func export() async {
        while !Task.isCancelled {
            let spans = buffer.take()
            guard !spans.isEmpty else { return }
            buffer.count(spans.count, wereTaken: await post(encoder.encode(spans)))
        }
    }
}
