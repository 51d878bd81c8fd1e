import Foundation

/// Work that goes on by itself, and whose outcome any number of callers wait for. A caller that is cancelled leaves; the
/// work goes on.
actor SharedTask<Value: Sendable> {
    private var outcome: Result<Value, any Error>?
    private var waiting: [UUID: CheckedContinuation<Value, any Error>] = [:]

    init(_ work: @escaping @Sendable () async throws -> Value) {
        Task {
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
            await self.finish(outcome)
        }
    }

    /// - Throws: what the work throws; ``PosternError/cancelled`` when the caller is cancelled first.
    nonisolated func value() async throws -> Value {
        let caller = UUID()
        return try await withTaskCancellationHandler {
            try await wait(caller)
        } onCancel: {
            Task { await self.leave(caller) }
        }
    }

    private func wait(_ caller: UUID) async throws -> Value {
        if let outcome { return try outcome.get() }
        if Task.isCancelled { throw PosternError.cancelled }
        return try await withCheckedThrowingContinuation { waiting[caller] = $0 }
    }

    private func leave(_ caller: UUID) {
        waiting.removeValue(forKey: caller)?.resume(throwing: PosternError.cancelled)
    }

    private func finish(_ outcome: Result<Value, any Error>) {
        self.outcome = outcome
        for caller in waiting.values { caller.resume(with: outcome) }
        waiting = [:]
    }
}
