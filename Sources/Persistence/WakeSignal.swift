/// Wakes one worker: signals that come while it works are folded into one, and none is lost.
public struct WakeSignal: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// Creates a signal; the worker's first round starts at once.
    public init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        continuation.yield()
    }

    /// Wakes the worker, or lets its next wait return at once.
    public func signal() {
        continuation.yield()
    }

    /// The wake-ups, for a worker that has a loop of its own.
    public var wakes: AsyncStream<Void> { stream }

    /// Ends ``wakes``.
    public func end() {
        continuation.finish()
    }

    /// Runs `body` for every wake-up and at least every `interval`, until the task is cancelled.
    public func forEach(atLeastEvery interval: Duration, _ body: () async -> Void) async {
        let ticker = Task { [continuation] in
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                continuation.yield()
            }
        }
        defer { ticker.cancel() }
        for await _ in stream {
            await body()
            if Task.isCancelled { return }
        }
    }
}
