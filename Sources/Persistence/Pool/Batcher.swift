import CoreMetrics
import Synchronization

/// Batches concurrent requests of one group. At most ``concurrency`` batches of a group run at once; callers that
/// arrive meanwhile join the next batch, which one of them runs as soon as one of those under way has ended.
///
/// A caller does not wait while fewer run, so an idle database answers each request at once; under load one round trip,
/// with one waking of a backend and of this process, serves many. A failure is shared by the batch: each caller then
/// decides whether to retry by itself.
///
/// Locking: `groups` guards the counts and the waiters. A continuation is taken out under the lock and resumed after
/// the lock was released. A caller whose batch has ended starts the next one in the same step, so a waiter implies a
/// running batch.
final class Batcher<Group: Hashable & Sendable, Input: Sendable, Output: Sendable>: Sendable {
    /// Runs the batch of one group; outputs in the order of the inputs, as many.
    typealias Run = @Sendable (Group, [Input]) async throws(StoreError) -> [Output]

    private enum Turn {
        case done(Result<Output, StoreError>)
        /// The caller runs a batch, of its own input and those of the waiters.
        case run([Waiter])
    }

    private struct Waiter {
        let input: Input
        let since = ContinuousClock.now
        let continuation: CheckedContinuation<Turn, Never>
    }

    private struct Queue {
        var running = 0
        var waiting: [Waiter] = []
    }

    private let concurrency: Int
    private let maximumWaiting: Int
    private let run: Run
    private let sizes: Recorder
    private let waits: Timer
    private let groups = Mutex<[Group: Queue]>([:])

    /// - Parameters:
    ///   - concurrency: batches of a group that run at once.
    ///   - maximumWaiting: how many callers of a group may wait, and share a batch.
    ///   - name: what is batched, for the metrics.
    init(
        concurrency: Int, maximumWaiting: Int, name: String = "other",
        metrics: any MetricsFactory = NOOPMetricsHandler.instance, run: @escaping Run
    ) {
        let labels = [("batch", name)]
        sizes = Recorder(label: "postern_batch_size", dimensions: labels, factory: metrics)
        waits = Timer(label: "postern_batch_wait_seconds", dimensions: labels, factory: metrics)
        self.concurrency = concurrency
        self.maximumWaiting = maximumWaiting
        self.run = run
    }

    /// The output for one input.
    /// - Throws: what ``Run`` threw; `.unavailable(.tooManyWaiters)` when too many callers of the group wait.
    func submit(_ input: Input, in group: Group) async throws(StoreError) -> Output {
        while true {
            switch mayRun(group) ? .run([]) : await turn(group, input) {
            case .run(let others): return try await lead(group, input, others)
            // The caller that ran the batch was cancelled, this one was not: it tries again.
            case .done(.failure(.cancelled)) where !Task.isCancelled: continue
            case .done(let result): return try result.get()
            }
        }
    }

    /// The number of waiters in a group.
    func waiting(in group: Group) -> Int { groups.withLock { $0[group]?.waiting.count ?? 0 } }
    /// Whether no batch runs and no group is remembered.
    var isIdle: Bool { groups.withLock { $0.isEmpty } }

    private func mayRun(_ group: Group) -> Bool {
        groups.withLock { groups in
            guard groups[group, default: Queue()].running < concurrency else { return false }
            groups[group, default: Queue()].running += 1
            return true
        }
    }

    private func turn(_ group: Group, _ input: Input) async -> Turn {
        await withCheckedContinuation { continuation in
            let turn = groups.withLock { groups -> Turn? in
                // A batch may have ended since.
                guard groups[group, default: Queue()].running >= concurrency else {
                    groups[group, default: Queue()].running += 1
                    return .run([])
                }
                guard groups[group, default: Queue()].waiting.count < maximumWaiting else {
                    return .done(.failure(.unavailable(.tooManyWaiters)))
                }
                groups[group]?.waiting.append(Waiter(input: input, continuation: continuation))
                return nil
            }
            if let turn { continuation.resume(returning: turn) }
        }
    }

    private func lead(_ group: Group, _ input: Input, _ others: [Waiter]) async throws(StoreError) -> Output {
        sizes.record(others.count + 1)
        let result: Result<[Output], StoreError>
        do throws(StoreError) {
            let outputs = try await run(group, [input] + others.map(\.input))
            result = outputs.count == others.count + 1 ? .success(outputs) : .failure(.malformedResult)
        } catch {
            result = .failure(error)
        }
        startNext(group)
        for (index, other) in others.enumerated() {
            other.continuation.resume(returning: .done(result.map { $0[index + 1] }))
        }
        return try result.get()[0]
    }

    /// Makes one batch of all who wait; the first of them runs it.
    private func startNext(_ group: Group) {
        let waiting = groups.withLock { groups in
            let waiting = groups[group]?.waiting ?? []
            groups[group]?.waiting = []
            if waiting.isEmpty {
                groups[group]?.running -= 1
                if groups[group]?.running == 0 { groups[group] = nil }
            }
            return waiting
        }
        if !waiting.isEmpty {
            let now = ContinuousClock.now
            for waiter in waiting { waits.recordNanoseconds(waiter.since.duration(to: now).nanoseconds) }
        }
        waiting.first?.continuation.resume(returning: .run(Array(waiting.dropFirst())))
    }
}
