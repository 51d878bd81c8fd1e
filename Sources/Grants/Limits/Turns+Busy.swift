/// When attempts that may lock the same row or address take turns in this process.
public enum AttemptTurn: Sendable {
    /// Before the first attempt: guesses at one address wait in memory and not on database connections.
    case atOnce(String)
    /// After an attempt found its lock taken. The first attempt waits for no turn: it takes the permits of the request,
    /// and other requests of the same source may be waiting for the verdict.
    case whenBusy(String)
    /// Never: no other attempt takes the same lock.
    case none
}

extension Turns {
    /// Runs a request that makes attempts, in its turn if it needs one at once.
    func run<T>(_ turn: AttemptTurn, _ body: () async throws -> T) async throws -> T {
        guard case .atOnce(let key) = turn else { return try await body() }
        return try await run(key, body)
    }

    /// Runs a statement that takes a lock only if it is free. When it is taken, the statement runs again after a random
    /// pause, for one caller of this process at a time. No database connection is held meanwhile.
    ///
    /// - Parameter statement: answers `nil` when the lock was taken; it must not have consumed anything then.
    /// - Throws: what `statement` threw; `temporarily_unavailable` when the lock did not become free in time.
    func retryWhileBusy<T>(_ turn: AttemptTurn, _ statement: () async throws -> T?) async throws -> T {
        if let answer = try await statement() { return answer }
        guard case .whenBusy(let key) = turn else { return try await again(statement) }
        return try await run(key) {
            if let answer = try await statement() { return answer }
            return try await again(statement)
        }
    }

    private func again<T>(_ statement: () async throws -> T?) async throws -> T {
        let deadline = ContinuousClock.now + limits.maximumWait
        while ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(Int.random(in: 2...25)))
            if let answer = try await statement() { return answer }
        }
        throw TokenError.unavailable("busy")
    }
}
