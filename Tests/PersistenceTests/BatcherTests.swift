import Synchronization
import TestSupport
import Testing

@testable import Persistence

@Suite("Batches of concurrent requests")
struct BatcherTests {
    /// Answers with its inputs, group first, as soon as the test says so.
    final class Runner: Sendable {
        private let calls = Mutex<[(group: String, inputs: [Int], go: CheckedContinuation<StoreError?, Never>?)]>([])

        var batches: [[Int]] { calls.withLock { $0.map(\.inputs) } }
        var underWay: Int { calls.withLock { $0.count { $0.go != nil } } }

        func run(_ group: String, _ inputs: [Int]) async throws(StoreError) -> [String] {
            let failure = await withCheckedContinuation { continuation in
                calls.withLock { $0.append((group, inputs, continuation)) }
            }
            if let failure { throw failure }
            return inputs.map { "\(group) \($0)" }
        }

        /// Answers the call at `index`.
        func answer(_ index: Int, failing failure: StoreError? = nil) {
            calls.withLock { calls in
                defer { calls[index].go = nil }
                return calls[index].go
            }?.resume(returning: failure)
        }
    }

    private let runner = Runner()
    private let batcher: Batcher<String, Int, String>

    init() {
        batcher = Batcher(concurrency: 1, maximumWaiting: 3) { [runner] (group, inputs) throws(StoreError) in
            try await runner.run(group, inputs)
        }
    }

    private func submitting(_ group: String, _ input: Int) -> Task<Result<String, StoreError>, Never> {
        Task {
            do throws(StoreError) {
                return .success(try await batcher.submit(input, in: group))
            } catch {
                return .failure(error)
            }
        }
    }

    private func calls(_ count: Int) async throws {
        try await eventually { runner.batches.count >= count }
    }

    private func waiting(_ count: Int, in group: String = "a") async throws {
        try await eventually { batcher.waiting(in: group) >= count }
    }

    /// One batch that runs, and callers, numbered from 1, that wait.
    private func underWay(waiting count: Int) async throws -> [Task<Result<String, StoreError>, Never>] {
        var tasks = [submitting("a", 0)]
        try await calls(1)
        for input in 1...count {
            tasks.append(submitting("a", input))
            try await waiting(input)
        }
        return tasks
    }

    @Test("a caller that comes alone is answered at once")
    func alone() async throws {
        let one = submitting("a", 1)
        try await calls(1)
        runner.answer(0)
        #expect(await one.value == .success("a 1"))
        let two = submitting("a", 2)
        try await calls(2)
        runner.answer(1)
        #expect(await two.value == .success("a 2"))
        #expect(runner.batches == [[1], [2]])
    }

    @Test("callers that arrive meanwhile share the next batch, and each gets its own output")
    func together() async throws {
        let tasks = try await underWay(waiting: 3)
        runner.answer(0)
        try await calls(2)
        #expect(runner.batches[1] == [1, 2, 3])
        runner.answer(1)
        for (index, task) in tasks.enumerated() { #expect(await task.value == .success("a \(index)")) }
    }

    @Test("groups never share a batch nor wait for each other")
    func groups() async throws {
        let first = submitting("a", 1)
        try await calls(1)
        let second = submitting("b", 2)
        try await calls(2)
        runner.answer(1)
        #expect(await second.value == .success("b 2"))
        runner.answer(0)
        #expect(await first.value == .success("a 1"))
    }

    @Test("a failure is shared by the batch, and by no later caller")
    func failure() async throws {
        let tasks = try await underWay(waiting: 2)
        runner.answer(0)
        try await calls(2)
        let later = submitting("a", 3)
        try await waiting(1)
        runner.answer(1, failing: .timedOut)
        try await calls(3)
        runner.answer(2)
        #expect(await tasks[0].value == .success("a 0"))
        #expect(await tasks[1].value == .failure(.timedOut))
        #expect(await tasks[2].value == .failure(.timedOut))
        #expect(await later.value == .success("a 3"))
    }

    @Test("when the caller that runs a batch is cancelled, the others try again")
    func cancelledLeader() async throws {
        let tasks = try await underWay(waiting: 2)
        runner.answer(0)
        try await calls(2)
        runner.answer(1, failing: .cancelled)
        try await calls(3)
        #expect(runner.batches[2] == [2])
        runner.answer(2)
        #expect(await tasks[2].value == .success("a 2"))
        #expect(await tasks[1].value == .failure(.cancelled))
        #expect(await tasks[0].value == .success("a 0"))
    }

    @Test("callers beyond the most that may wait are refused at once")
    func full() async throws {
        let tasks = try await underWay(waiting: 3)
        #expect(await submitting("a", 4).value == .failure(.unavailable(.tooManyWaiters)))
        runner.answer(0)
        try await calls(2)
        runner.answer(1)
        for task in tasks { #expect((try? await task.value.get()) != nil) }
        #expect(batcher.isIdle)
    }

    @Test("of a thousand concurrent callers each gets its own output, over several batches at once")
    func many() async throws {
        let busy = Batcher<Int, Int, Int>(concurrency: 3, maximumWaiting: 1000) { (group, inputs) throws(StoreError) in
            await Task.yield()
            return inputs.map { $0 * 10 + group }
        }
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            for input in 0..<1000 {
                tasks.addTask { try await busy.submit(input, in: input % 3) == input * 10 + input % 3 }
            }
            for try await isRight in tasks { #expect(isRight) }
        }
        #expect(busy.isIdle)
    }
}

@Suite("Batches beside one that runs")
struct BesideBatcherTests {
    /// Time that stands still until the test moves it.
    private final class StillClock: Sendable {
        private let state = Mutex(
            (
                now: ContinuousClock.now,
                sleeping: [(until: ContinuousClock.Instant, wake: CheckedContinuation<Void, Never>)]()
            ))
        var now: ContinuousClock.Instant { state.withLock { $0.now } }
        var sleepers: Int { state.withLock { $0.sleeping.count } }

        func sleep(_ duration: Duration) async {
            await withCheckedContinuation { wake in
                state.withLock { $0.sleeping.append((until: $0.now + duration, wake: wake)) }
            }
        }

        func advance(by duration: Duration) {
            let woken = state.withLock { state in
                state.now += duration
                let woken = state.sleeping.filter { $0.until <= state.now }
                state.sleeping.removeAll { $0.until <= state.now }
                return woken
            }
            for sleeper in woken { sleeper.wake.resume() }
        }
    }

    private let runner = BatcherTests.Runner()
    private let clock = StillClock()
    private let batcher: Batcher<String, Int, String>

    /// Two at once: the second for three callers, or when the first is older than 10 ms.
    init() {
        batcher = Batcher(
            concurrency: 2, maximumWaiting: 5, minimumBatch: 3, maximumWait: .milliseconds(10),
            now: { [clock] in clock.now },
            sleep: { [clock] in await clock.sleep($0) }
        ) { [runner] (group, inputs) throws(StoreError) in
            try await runner.run(group, inputs)
        }
    }

    private func submitting(_ input: Int) -> Task<String?, Never> {
        Task { try? await batcher.submit(input, in: "a") }
    }

    private func calls(_ count: Int) async throws {
        try await eventually { runner.batches.count >= count }
    }

    private func waiting(_ count: Int) async throws {
        try await eventually { batcher.waiting(in: "a") >= count }
    }

    /// One batch that runs and two callers that wait.
    private func underWay() async throws -> [Task<String?, Never>] {
        var tasks = [submitting(0)]
        try await calls(1)
        for input in 1...2 {
            tasks.append(submitting(input))
            try await waiting(input)
        }
        return tasks
    }

    private func allAnswered(_ tasks: [Task<String?, Never>]) async throws {
        for (index, task) in tasks.enumerated() { #expect(await task.value == "a \(index)") }
        #expect(batcher.isIdle)
        try await eventually { clock.sleepers > 0 }
        clock.advance(by: .seconds(1))
    }

    @Test("few callers wait for the batch under way, and a minimumBatch does not")
    func minimumBatch() async throws {
        var tasks = try await underWay()
        #expect(runner.batches == [[0]])
        tasks.append(submitting(3))
        try await calls(2)
        #expect(runner.batches[1].sorted() == [1, 2, 3])
        // No third one, of however many.
        for input in 4...7 {
            tasks.append(submitting(input))
            try await waiting(input - 3)
        }
        #expect(runner.batches.count == 2)
        runner.answer(1)
        try await calls(3)
        #expect(runner.batches[2].sorted() == [4, 5, 6, 7])
        runner.answer(0)
        runner.answer(2)
        try await allAnswered(tasks)
    }

    @Test("nobody waits longer behind a batch that takes long, also when nobody else comes")
    func maximumWait() async throws {
        var tasks = try await underWay()
        try await eventually { clock.sleepers == 1 }
        clock.advance(by: .milliseconds(9))
        #expect(clock.sleepers == 1 && runner.batches.count == 1)
        clock.advance(by: .milliseconds(1))
        try await calls(2)
        #expect(runner.batches[1].sorted() == [1, 2])
        runner.answer(1)
        #expect(await tasks[2].value == "a 2")
        // The first one still runs, and is old: nothing waits for it.
        tasks.append(submitting(3))
        try await calls(3)
        #expect(runner.batches[2] == [3])
        runner.answer(2)
        runner.answer(0)
        for (index, task) in tasks.enumerated() { #expect(await task.value == "a \(index)") }
        #expect(batcher.isIdle && clock.sleepers == 0)
    }

    @Test("who waits when one of two batches ends goes with the end of the other, when it is young and they are few")
    func ends() async throws {
        var tasks = try await underWay()
        tasks.append(submitting(3))
        try await calls(2)
        tasks.append(submitting(4))
        try await waiting(1)
        runner.answer(1)
        for task in tasks[1...3] { #expect(await task.value != nil) }
        #expect(runner.batches.count == 2 && batcher.waiting(in: "a") == 1)
        runner.answer(0)
        try await calls(3)
        runner.answer(2)
        try await allAnswered(tasks)
    }
}
