/// Holds uniform answers until a fixed time after the last byte of the request, so that the time of an answer does not
/// show how much work it took (docs/decisions/0000, F7).
public struct UniformDeadline: Sendable {
    /// From the last byte of the request to the first of the answer. Zero sends at once, for benchmarks only.
    public let duration: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let sleep: @Sendable (ContinuousClock.Instant) async -> Void

    /// A deadline this long after a request's arrival.
    public init(_ duration: Duration) {
        self.init(duration, now: { .now }, sleep: { try? await Task.sleep(until: $0, clock: .continuous) })
    }

    /// - Parameters:
    ///   - now: the clock.
    ///   - sleep: returns at an instant of that clock.
    init(
        _ duration: Duration, now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (ContinuousClock.Instant) async -> Void
    ) {
        self.duration = duration
        self.now = now
        self.sleep = sleep
    }

    /// Waits until the deadline of a request. If the work took longer, waits until the next multiple of the duration.
    package func hold(_ exchange: Exchange) async {
        guard duration > .zero else { return }
        var deadline = exchange.arrivedAt + duration
        while deadline < now() { deadline += duration }
        await sleep(deadline)
    }

    /// Runs `work` when the answer of the request under way has left and what it has recorded is as old as the
    /// deadline: a worker of another process takes nothing younger, since it cannot see the answer leave.
    func whenAnswered(_ work: @escaping @Sendable () -> Void) {
        let recorded = now()
        Departure.then {
            guard duration > .zero else { return work() }
            Task {
                await sleep(recorded + duration)
                work()
            }
        }
    }
}
