import Synchronization

/// Batches concurrent questions of one group. At most ``lanes`` statements per group run at once; callers that arrive
/// meanwhile join the next batch, and one of them runs the statement for all as soon as a lane is free.
///
/// A caller does not wait while a lane is free, so an idle database answers each question at once. Under load one round
/// trip, with one wake-up of a backend and of this process, serves many callers. A failure is shared by the batch; each
/// caller then decides whether to retry alone.
///
/// Locking: `groups` guards the lanes and the waiters. A continuation is removed under the lock and resumed after the
/// lock was released. A lane that becomes free goes to the waiters in the same step, so a waiter implies a busy lane.
final class Gatherer<Group: Hashable & Sendable, Question: Sendable, Answer: Sendable>: Sendable {
    /// Asks the questions of one group; answers in the same order, as many.
    typealias Ask = @Sendable (Group, [Question]) async throws(StoreError) -> [Answer]

    private enum Turn {
        case answered(Result<Answer, StoreError>)
        /// The caller has a lane and runs the statement for itself and these waiters.
        case lead([Waiter])
    }

    private struct Waiter {
        let question: Question
        let continuation: CheckedContinuation<Turn, Never>
    }

    private struct Line {
        var busy = 0
        var waiting: [Waiter] = []
    }

    private let lanes: Int
    private let maximumWaiting: Int
    private let ask: Ask
    private let groups = Mutex<[Group: Line]>([:])

    /// - Parameters:
    ///   - lanes: statements of a group that run at once.
    ///   - maximumWaiting: callers of a group that may wait, and the largest batch.
    init(lanes: Int, maximumWaiting: Int, ask: @escaping Ask) {
        self.lanes = lanes
        self.maximumWaiting = maximumWaiting
        self.ask = ask
    }

    /// The answer to one question.
    /// - Throws: what ``Ask`` threw; `.unavailable(.tooManyWaiters)` when too many of the group wait.
    func answer(_ group: Group, _ question: Question) async throws(StoreError) -> Answer {
        while true {
            switch takesLane(group) ? .lead([]) : await turn(group, question) {
            case .lead(let others): return try await lead(group, question, others)
            // The caller that ran the batch was cancelled; retry for this caller.
            case .answered(.failure(.cancelled)) where !Task.isCancelled: continue
            case .answered(let result): return try result.get()
            }
        }
    }

    /// The number of waiters in a group.
    func waiting(in group: Group) -> Int { groups.withLock { $0[group]?.waiting.count ?? 0 } }
    /// Whether no statement runs and no group is remembered.
    var isIdle: Bool { groups.withLock { $0.isEmpty } }

    private func takesLane(_ group: Group) -> Bool {
        groups.withLock { groups in
            guard groups[group, default: Line()].busy < lanes else { return false }
            groups[group, default: Line()].busy += 1
            return true
        }
    }

    private func turn(_ group: Group, _ question: Question) async -> Turn {
        await withCheckedContinuation { continuation in
            let turn = groups.withLock { groups -> Turn? in
                // A lane may have become free since.
                guard groups[group, default: Line()].busy >= lanes else {
                    groups[group, default: Line()].busy += 1
                    return .lead([])
                }
                guard groups[group, default: Line()].waiting.count < maximumWaiting else {
                    return .answered(.failure(.unavailable(.tooManyWaiters)))
                }
                groups[group]?.waiting.append(Waiter(question: question, continuation: continuation))
                return nil
            }
            if let turn { continuation.resume(returning: turn) }
        }
    }

    private func lead(_ group: Group, _ question: Question, _ others: [Waiter]) async throws(StoreError) -> Answer {
        let result: Result<[Answer], StoreError>
        do throws(StoreError) {
            let answers = try await ask(group, [question] + others.map(\.question))
            result = answers.count == others.count + 1 ? .success(answers) : .failure(.malformedResult)
        } catch {
            result = .failure(error)
        }
        handOn(group)
        for (index, other) in others.enumerated() {
            other.continuation.resume(returning: .answered(result.map { $0[index + 1] }))
        }
        return try result.get()[0]
    }

    /// Gives the lane to the waiters as one batch, or frees it.
    private func handOn(_ group: Group) {
        let waiting = groups.withLock { groups in
            let waiting = groups[group]?.waiting ?? []
            groups[group]?.waiting = []
            if waiting.isEmpty {
                groups[group]?.busy -= 1
                if groups[group]?.busy == 0 { groups[group] = nil }
            }
            return waiting
        }
        waiting.first?.continuation.resume(returning: .lead(Array(waiting.dropFirst())))
    }
}
