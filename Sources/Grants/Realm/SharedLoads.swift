import Persistence
import Synchronization

/// Lets many requests that miss the same snapshot wait for one load.
///
/// Not an actor: requests come from event loops, and a task that leaves an actor may continue on the thread on which
/// another task entered it (docs/decisions/0022).
final class SharedLoads: Sendable {
    private let running = Mutex<[String: Task<any Sendable, any Error>]>([:])

    /// Runs `body` and returns its result. Callers that ask for the same `name` while it runs share that result.
    func load<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws(StoreError) -> Value {
        let task = task(name, body)
        do {
            guard let value = try await task.value as? Value else { throw StoreError.malformedResult }
            return value
        } catch let error as StoreError {
            throw error
        } catch {
            throw .malformedResult
        }
    }

    private func task<Value: Sendable>(
        _ name: String, _ body: @escaping @Sendable () async throws -> Value
    ) -> Task<any Sendable, any Error> {
        running.withLock { running in
            if let task = running[name] { return task }
            let task = Task<any Sendable, any Error> {
                // Cannot come before the task is noted below: that holds the lock.
                defer { self.running.withLock { $0[name] = nil } }
                return try await body()
            }
            running[name] = task
            return task
        }
    }
}
