/// What a test waited for did not come.
public struct NeverHappened: Error, CustomStringConvertible {
    public let description: String
}

/// Waits until a condition holds. A test that would wait for ever fails instead.
/// - Throws: ``NeverHappened`` after a minute, which is far more than any machine needs.
public func eventually(
    _ condition: () -> Bool, isolation: isolated (any Actor)? = #isolation, fileID: String = #fileID, line: Int = #line
) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while !condition() {
        guard ContinuousClock.now < deadline else {
            throw NeverHappened(description: "\(fileID):\(line): the condition did not come to hold")
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}
