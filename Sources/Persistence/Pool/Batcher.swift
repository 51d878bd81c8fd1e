import CoreMetrics
import Synchronization

/// Batches concurrent requests of one group. While a batch runs, callers that arrive join the next one, which one of
/// them runs as soon as the first has ended, or beside it: when ``minimumBatch`` callers are there, or when the newest
/// batch under way is as old as ``maximumWait``. At most ``concurrency`` batches of a group run at once.
///
/// A caller does not wait while none runs, so an idle database answers each request at once; under load one round trip,
/// with one waking of a backend and of this process, serves many. A failure is shared by the batch: each caller then
/// decides whether to retry by itself.
///
/// Locking: `groups` guards the batches under way and the waiters. A continuation is taken out under the lock and
/// resumed after the lock was released. The caller whose batch was the last one under way starts the next one in the
/// same step, so a waiter implies a running batch.
final class Batcher<Group: Hashable & Sendable, Input: Sendable, Output: Sendable>: Sendable {
    /// Runs the batch of one group; outputs in the order of the inputs, as many.
    typealias Run = @Sendable (Group, [Input]) async throws(StoreError) -> [Output]
    typealias Instant = ContinuousClock.Instant

    private enum Turn {
        case done(Result<Output, StoreError>)
        /// The caller runs a batch, of its own input and those of the waiters, which began at that moment.
        case run([Waiter], Instant)
    }

    private struct Waiter {
        let input: Input
        let since: Instant
        let continuation: CheckedContinuation<Turn, Never>
    }

    private struct Queue {
        /// When each batch under way began, the newest last.
        var running: [Instant] = []
        var waiting: [Waiter] = []
    }

    private let concurrency: Int
    private let minimumBatch: Int
    private let maximumWait: Duration
    private let now: @Sendable () -> Instant
    private let sleep: @Sendable (Duration) async -> Void
    private let maximumWaiting: Int
    private let run: Run
    private let sizes: Recorder
    private let waits: Timer
    private let groups = Mutex<[Group: Queue]>([:])

    /// - Parameters:
    ///   - concurrency: batches of a group that run at once.
    ///   - maximumWaiting: how many callers of a group may wait, and share a batch.
    ///   - minimumBatch: so many callers begin a batch although others run.
    ///   - maximumWait: callers begin a batch when the others have run for so long.
    ///   - name: what is batched, for the metrics.
    init(
        concurrency: Int, maximumWaiting: Int, minimumBatch: Int = 1, maximumWait: Duration = .zero,
        name: String = "other",
        metrics: any MetricsFactory = NOOPMetricsHandler.instance,
        now: @escaping @Sendable () -> Instant = { ContinuousClock.now },
        sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }, run: @escaping Run
    ) {
        let labels = [("batch", name)]
        sizes = Recorder(label: "postern_batch_size", dimensions: labels, factory: metrics)
        waits = Timer(label: "postern_batch_wait_seconds", dimensions: labels, factory: metrics)
        self.concurrency = concurrency
        self.maximumWaiting = maximumWaiting
        self.minimumBatch = minimumBatch
        self.maximumWait = maximumWait
        self.now = now
        self.sleep = sleep
        self.run = run
    }

    /// The output for one input.
    /// - Throws: what ``Run`` threw; `.unavailable(.tooManyWaiters)` when too many callers of the group wait.
    func submit(_ input: Input, in group: Group) async throws(StoreError) -> Output {
        while true {
            let turn = if let alone = beginAlone(group) { alone } else { await waitForTurn(group, input) }
            switch turn {
            case .run(let others, let began): return try await lead(group, input, others, began)
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

    /// Whether a batch of so many callers may begin at `moment`.
    private func mayBegin(_ queue: Queue, of callers: Int, at moment: Instant) -> Bool {
        guard let newest = queue.running.last else { return true }
        return queue.running.count < concurrency
            && (callers >= minimumBatch || newest.duration(to: moment) >= maximumWait)
    }

    /// `nil` when the caller may have to wait.
    private func beginAlone(_ group: Group) -> Turn? {
        let moment = now()
        return groups.withLock { groups in
            let queue = groups[group, default: Queue()]
            guard queue.waiting.isEmpty, mayBegin(queue, of: 1, at: moment) else { return nil }
            groups[group, default: Queue()].running.append(moment)
            return .run([], moment)
        }
    }

    private func waitForTurn(_ group: Group, _ input: Input) async -> Turn {
        let moment = now()
        return await withCheckedContinuation { continuation in
            let (turn, isFirst) = groups.withLock { groups -> (Turn?, Bool) in
                var queue = groups[group, default: Queue()]
                let waiting = queue.waiting
                if mayBegin(queue, of: waiting.count + 1, at: moment) {
                    queue.running.append(moment)
                    queue.waiting = []
                    groups[group] = queue
                    return (.run(waiting, moment), false)
                }
                guard waiting.count < maximumWaiting else {
                    return (.done(.failure(.unavailable(.tooManyWaiters))), false)
                }
                groups[group]?.waiting.append(Waiter(input: input, since: moment, continuation: continuation))
                return (nil, waiting.isEmpty)
            }
            if isFirst, minimumBatch > 1 { beginLater(group) }
            guard let turn else { return }
            if case .run(let waited, _) = turn { record(waited, until: moment) }
            continuation.resume(returning: turn)
        }
    }

    /// Begins a batch of the waiters after ``maximumWait``, for the case that no other caller arrives meanwhile. Each
    /// batch under way began before the first waiter arrived, so each is old enough by then. If ``concurrency`` batches
    /// run, the waiters' batch begins when one of them ends.
    private func beginLater(_ group: Group) {
        Task {
            await sleep(maximumWait)
            let moment = now()
            let next = groups.withLock { groups in
                guard var queue = groups.removeValue(forKey: group) else { return [Waiter]() }
                defer { groups[group] = queue }
                return takeWaiting(of: &queue, at: moment)
            }
            start(next, at: moment)
        }
    }

    private func lead(
        _ group: Group, _ input: Input, _ others: [Waiter], _ began: Instant
    ) async throws(StoreError) -> Output {
        sizes.record(others.count + 1)
        let result: Result<[Output], StoreError>
        do throws(StoreError) {
            let outputs = try await run(group, [input] + others.map(\.input))
            result = outputs.count == others.count + 1 ? .success(outputs) : .failure(.malformedResult)
        } catch {
            result = .failure(error)
        }
        end(began, group)
        for (index, other) in others.enumerated() {
            other.continuation.resume(returning: .done(result.map { $0[index + 1] }))
        }
        return try result.get()[0]
    }

    private func end(_ began: Instant, _ group: Group) {
        let moment = now()
        let next = groups.withLock { groups in
            guard var queue = groups.removeValue(forKey: group) else { return [Waiter]() }
            if let index = queue.running.firstIndex(of: began) { queue.running.remove(at: index) }
            let next = takeWaiting(of: &queue, at: moment)
            if !queue.running.isEmpty { groups[group] = queue }
            return next
        }
        start(next, at: moment)
    }

    /// Makes all waiters a batch under way, and returns them. Returns no waiter when a batch may not begin.
    private func takeWaiting(of queue: inout Queue, at moment: Instant) -> [Waiter] {
        guard !queue.waiting.isEmpty, mayBegin(queue, of: queue.waiting.count, at: moment) else { return [] }
        queue.running.append(moment)
        defer { queue.waiting = [] }
        return queue.waiting
    }

    /// The first of the waiters runs their batch.
    private func start(_ waiters: [Waiter], at moment: Instant) {
        record(waiters, until: moment)
        waiters.first?.continuation.resume(returning: .run(Array(waiters.dropFirst()), moment))
    }

    private func record(_ waiters: [Waiter], until moment: Instant) {
        for waiter in waiters { waits.recordNanoseconds(waiter.since.duration(to: moment).nanoseconds) }
    }
}
