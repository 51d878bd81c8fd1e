/// Sends uniform answers at a fixed time after the request arrived, so that their time does not reveal the work done
/// (docs/decisions/0000, F7).
public struct UniformDeadline: Sendable {
    /// Zero sends at once, for benchmarks only.
    public let duration: Duration

    /// A deadline this long after a request's arrival.
    public init(_ duration: Duration) {
        self.duration = duration
    }

    /// Waits until the deadline of a request; work that took longer is released at the next multiple of it.
    package func hold(_ exchange: Exchange) async {
        guard duration > .zero else { return }
        var deadline = exchange.arrivedAt + duration
        while deadline < .now { deadline += duration }
        try? await Task.sleep(until: deadline, clock: .continuous)
    }
}
