/// What a test waited for did not come.
public struct NeverHappened: Error, CustomStringConvertible {
    /// What was waited for.
    public let description: String

    /// - Parameter description: what was waited for.
    public init(_ description: String) {
        self.description = description
    }
}

/// Far more than any machine needs. All tests start at once, and those that compute let the others wait.
public let eventualDeadline = Duration.seconds(180)

/// Waits until a condition holds. A test that would wait for ever fails instead.
/// - Throws: ``NeverHappened`` after ``eventualDeadline``.
public func eventually(
    _ condition: () -> Bool, isolation: isolated (any Actor)? = #isolation, fileID: String = #fileID, line: Int = #line
) async throws {
    let deadline = ContinuousClock.now + eventualDeadline
    while !condition() {
        guard ContinuousClock.now < deadline else {
            throw NeverHappened("\(fileID):\(line): the condition did not come to hold")
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}
