import Synchronization
import TestSupport
import Testing

@testable import Persistence

@Suite("Gathering questions")
struct GathererTests {
    /// Answers with what was asked, group first, as soon as the test says so.
    private final class Oracle: Sendable {
        private let calls = Mutex<[(group: String, questions: [Int], go: CheckedContinuation<StoreError?, Never>?)]>([])

        var asked: [[Int]] { calls.withLock { $0.map(\.questions) } }
        var underWay: Int { calls.withLock { $0.count { $0.go != nil } } }

        func ask(_ group: String, _ questions: [Int]) async throws(StoreError) -> [String] {
            let failure = await withCheckedContinuation { continuation in
                calls.withLock { $0.append((group, questions, continuation)) }
            }
            if let failure { throw failure }
            return questions.map { "\(group) \($0)" }
        }

        /// Answers the call at `index`.
        func answer(_ index: Int, failing failure: StoreError? = nil) {
            calls.withLock { calls in
                defer { calls[index].go = nil }
                return calls[index].go
            }?.resume(returning: failure)
        }
    }

    private let oracle = Oracle()
    private let gatherer: Gatherer<String, Int, String>

    init() {
        gatherer = Gatherer(lanes: 1, maximumWaiting: 3) { [oracle] (group, questions) throws(StoreError) in
            try await oracle.ask(group, questions)
        }
    }

    private func asking(_ group: String, _ question: Int) -> Task<Result<String, StoreError>, Never> {
        Task {
            do throws(StoreError) {
                return .success(try await gatherer.answer(group, question))
            } catch {
                return .failure(error)
            }
        }
    }

    private func calls(_ count: Int) async throws {
        try await eventually { oracle.asked.count >= count }
    }

    private func waiting(_ count: Int, in group: String = "a") async throws {
        try await eventually { gatherer.waiting(in: group) >= count }
    }

    /// One question under way, and others, numbered from 1, who wait.
    private func underWay(waiting count: Int) async throws -> [Task<Result<String, StoreError>, Never>] {
        var tasks = [asking("a", 0)]
        try await calls(1)
        for question in 1...count {
            tasks.append(asking("a", question))
            try await waiting(question)
        }
        return tasks
    }

    @Test("who comes alone is asked for at once")
    func alone() async throws {
        let one = asking("a", 1)
        try await calls(1)
        oracle.answer(0)
        #expect(await one.value == .success("a 1"))
        let two = asking("a", 2)
        try await calls(2)
        oracle.answer(1)
        #expect(await two.value == .success("a 2"))
        #expect(oracle.asked == [[1], [2]])
    }

    @Test("who comes meanwhile is asked for together, and each gets an answer of its own")
    func together() async throws {
        let tasks = try await underWay(waiting: 3)
        oracle.answer(0)
        try await calls(2)
        #expect(oracle.asked[1] == [1, 2, 3])
        oracle.answer(1)
        for (index, task) in tasks.enumerated() { #expect(await task.value == .success("a \(index)")) }
    }

    @Test("groups never share a question nor wait for each other")
    func groups() async throws {
        let here = asking("a", 1)
        try await calls(1)
        let there = asking("b", 2)
        try await calls(2)
        oracle.answer(1)
        #expect(await there.value == .success("b 2"))
        oracle.answer(0)
        #expect(await here.value == .success("a 1"))
    }

    @Test("a failure is for those who were asked for together, and for nobody after them")
    func failure() async throws {
        let tasks = try await underWay(waiting: 2)
        oracle.answer(0)
        try await calls(2)
        let later = asking("a", 3)
        try await waiting(1)
        oracle.answer(1, failing: .timedOut)
        try await calls(3)
        oracle.answer(2)
        #expect(await tasks[0].value == .success("a 0"))
        #expect(await tasks[1].value == .failure(.timedOut))
        #expect(await tasks[2].value == .failure(.timedOut))
        #expect(await later.value == .success("a 3"))
    }

    @Test("when the one who asked for others is cancelled, they ask again")
    func cancelledLeader() async throws {
        let tasks = try await underWay(waiting: 2)
        oracle.answer(0)
        try await calls(2)
        oracle.answer(1, failing: .cancelled)
        try await calls(3)
        #expect(oracle.asked[2] == [2])
        oracle.answer(2)
        #expect(await tasks[2].value == .success("a 2"))
        #expect(await tasks[1].value == .failure(.cancelled))
        #expect(await tasks[0].value == .success("a 0"))
    }

    @Test("more than may wait are refused at once")
    func full() async throws {
        let tasks = try await underWay(waiting: 3)
        #expect(await asking("a", 4).value == .failure(.unavailable(.tooManyWaiters)))
        oracle.answer(0)
        try await calls(2)
        oracle.answer(1)
        for task in tasks { #expect((try? await task.value.get()) != nil) }
        #expect(gatherer.isIdle)
    }

    @Test("of a thousand at once everybody gets an answer of its own, over several lanes")
    func many() async throws {
        let busy = Gatherer<Int, Int, Int>(lanes: 3, maximumWaiting: 1000) { (group, questions) throws(StoreError) in
            await Task.yield()
            return questions.map { $0 * 10 + group }
        }
        try await withThrowingTaskGroup(of: Bool.self) { tasks in
            for question in 0..<1000 {
                tasks.addTask { try await busy.answer(question % 3, question) == question * 10 + question % 3 }
            }
            for try await isRight in tasks { #expect(isRight) }
        }
        #expect(busy.isIdle)
    }
}
