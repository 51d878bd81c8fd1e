extension Turns {
    /// How often a statement runs that keeps finding its lock taken: about half a second in all.
    private static let tries = 12

    /// Runs a statement that takes a lock only if it is free. When it is taken, the statement runs again after a random
    /// pause, for one caller of this process at a time. No database connection is held meanwhile.
    ///
    /// The first try does not wait for a turn: it takes the permits of the request, and other requests of the same
    /// source may wait for that verdict.
    /// - Parameter statement: answers `nil` when the lock was taken; it must not have consumed anything then.
    /// - Throws: what `statement` threw; `temporarily_unavailable` when the lock never was free.
    func untilFree<T>(_ key: String, _ statement: () async throws -> T?) async throws -> T {
        if let answer = try await statement() { return answer }
        return try await run(key) {
            for attempt in 1..<Self.tries {
                if let answer = try await statement() { return answer }
                try await Task.sleep(for: .milliseconds(Int.random(in: 2...8) * attempt))
            }
            throw TokenError.unavailable("busy")
        }
    }
}
