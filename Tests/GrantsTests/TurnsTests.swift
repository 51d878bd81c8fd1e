@testable import Grants
import Synchronization
import TestSupport
import Testing

@Suite("Turns")
struct TurnsTests {
    private typealias Outcome = Result<Int, TokenError>

    /// Bodies that run until the test ends them, in the order they began.
    private final class Stage: Sendable {
        private let bodies = Mutex<[(number: Int, end: CheckedContinuation<Void, Never>?)]>([])

        var begun: [Int] { bodies.withLock { $0.map(\.number) } }
        var running: Int { bodies.withLock { $0.count { $0.end != nil } } }

        func run(_ number: Int) async -> Int {
            await withCheckedContinuation { end in bodies.withLock { $0.append((number, end)) } }
            return number
        }

        func endFirst() {
            bodies.withLock { bodies -> CheckedContinuation<Void, Never>? in
                guard let index = bodies.firstIndex(where: { $0.end != nil }) else { return nil }
                defer { bodies[index].end = nil }
                return bodies[index].end
            }?.resume()
        }
    }

    private let stage = Stage()

    private func run(_ turns: Turns, _ key: String, _ number: Int) -> Task<Outcome, Never> {
        Task { [stage] in
            do {
                return .success(try await turns.run(key) { await stage.run(number) })
            } catch {
                return .failure(TokenError(error))
            }
        }
    }

    /// A body that runs and others, numbered from 1, that wait.
    private func hot(_ turns: Turns, _ key: String, waiting: Int) async throws -> [Task<Outcome, Never>] {
        var tasks = [run(turns, key, 0)]
        try await eventually { stage.running == 1 }
        for number in 0..<waiting {
            tasks.append(run(turns, key, number + 1))
            try await eventually { turns.waiting(for: key) == number + 1 }
        }
        return tasks
    }

    private func isUnavailable(_ outcome: Outcome) -> Bool {
        if case .failure(let error) = outcome { return error.code == .temporarilyUnavailable }
        return false
    }

    @Test func `one body of a key runs at a time, in the order they came`() async throws {
        let turns = Turns(.init(maximumWait: .seconds(600)))
        let tasks = try await hot(turns, "a", waiting: 5)
        for done in 1...6 {
            #expect(stage.running == 1)
            stage.endFirst()
            try await eventually { stage.begun.count == min(done + 1, 6) }
        }
        for (number, task) in tasks.enumerated() { #expect(await task.value == .success(number)) }
        #expect(stage.begun == Array(0...5))
        #expect(turns.isIdle)
    }

    @Test func `another key does not wait`() async throws {
        let turns = Turns(.init(waitersPerKey: 2, waiters: 2, maximumWait: .seconds(600)))
        let tasks = try await hot(turns, "a", waiting: 2)
        let other = run(turns, "b", 9)
        try await eventually { stage.running == 2 }
        for _ in 0..<4 {
            stage.endFirst()
            await Task.yield()
        }
        try await eventually {
            stage.endFirst()
            return stage.begun.count == 4 && stage.running == 0
        }
        #expect(await other.value == .success(9))
        for task in tasks { _ = await task.value }
        #expect(turns.isIdle)
    }

    @Test func `over the bound of a key a caller is refused at once`() async throws {
        let turns = Turns(.init(waitersPerKey: 3, maximumWait: .seconds(600)))
        let tasks = try await hot(turns, "a", waiting: 3)
        #expect(isUnavailable(await run(turns, "a", 9).value))
        try await eventually {
            stage.endFirst()
            return stage.begun.count == 4 && stage.running == 0
        }
        for task in tasks { _ = await task.value }
        #expect(!stage.begun.contains(9))
        #expect(turns.isIdle)
    }

    @Test func `over the bound of all keys a caller that would wait is refused, one whose key is free is not`()
        async throws
    {
        let turns = Turns(.init(waitersPerKey: 3, waiters: 2, maximumWait: .seconds(600)))
        let tasks = try await hot(turns, "a", waiting: 2)
        let first = run(turns, "b", 8)
        try await eventually { stage.running == 2 }
        #expect(isUnavailable(await run(turns, "b", 9).value))
        try await eventually {
            stage.endFirst()
            return stage.begun.count == 4 && stage.running == 0
        }
        #expect(await first.value == .success(8))
        for task in tasks { _ = await task.value }
        #expect(turns.isIdle)
    }

    @Test func `a turn that does not come in time is refused, and those after it are served`() async throws {
        let turns = Turns(.init(maximumWait: .milliseconds(50)))
        let first = run(turns, "a", 0)
        try await eventually { stage.running == 1 }
        let late = [run(turns, "a", 1), run(turns, "a", 2)]
        for task in late { #expect(isUnavailable(await task.value)) }
        #expect(turns.waiting(for: "a") == 0)
        stage.endFirst()
        #expect(await first.value == .success(0))
        let next = run(turns, "a", 9)
        try await eventually { stage.running == 1 }
        stage.endFirst()
        #expect(await next.value == .success(9))
        #expect(stage.begun == [0, 9])
        #expect(turns.isIdle)
    }

    @Test func `a cancelled caller leaves the line and the next one is served`() async throws {
        let turns = Turns(.init(maximumWait: .seconds(600)))
        let tasks = try await hot(turns, "a", waiting: 2)
        tasks[1].cancel()
        #expect(isUnavailable(await tasks[1].value))
        stage.endFirst()
        try await eventually { stage.running == 1 }
        stage.endFirst()
        #expect(await tasks[2].value == .success(2))
        #expect(stage.begun == [0, 2])
        #expect(turns.isIdle)
    }

    @Test func `a body that throws hands its turn on`() async throws {
        let turns = Turns(.init(maximumWait: .seconds(600)))
        for _ in 0..<3 {
            await #expect(throws: TokenError.missing("x")) {
                try await turns.run("a") { throw TokenError.missing("x") }
            }
        }
        #expect(turns.isIdle)
    }

    /// Counts the bodies that run at the same time, per key.
    private final class Witness: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        private let most = Mutex(0)
        var mostAtOnce: Int { most.withLock { $0 } }

        func enter(_ key: String) {
            let now = counts.withLock { counts in
                counts[key, default: 0] += 1
                return counts[key, default: 0]
            }
            most.withLock { $0 = max($0, now) }
        }
        func leave(_ key: String) { counts.withLock { $0[key, default: 0] -= 1 } }
    }

    @Test func `with callers that come, expire and are cancelled at random nothing is left and no bodies overlap`()
        async
    {
        let turns = Turns(.init(waitersPerKey: 8, waiters: 20, maximumWait: .milliseconds(3)))
        let witness = Witness()
        let tasks = (0..<2000).map { number in
            let task = Task { () async -> TokenError.Code? in
                let key = "\(number % 5)"
                do {
                    try await turns.run(key) {
                        witness.enter(key)
                        await Task.yield()
                        witness.leave(key)
                    }
                    return nil
                } catch { return TokenError(error).code }
            }
            if number % 3 == 0 { task.cancel() }
            return task
        }
        for task in tasks {
            let code = await task.value
            #expect(code == nil || code == .temporarilyUnavailable)
        }
        #expect(witness.mostAtOnce == 1)
        #expect(turns.isIdle)
    }
}
