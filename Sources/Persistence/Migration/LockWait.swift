/// How a migration waits for locks.
public struct LockWait: Sendable {
    /// For how long a file waits for all its locks. All requests that need one of the tables wait behind it meanwhile.
    public var once: Duration
    /// For how long a file is tried again.
    public var inAll: Duration
    /// The pause after the first try; it doubles up to ``longestPause``.
    public var firstPause: Duration
    /// The longest pause.
    public var longestPause = Duration.seconds(8)

    /// - Parameters: see the members.
    public init(
        once: Duration = .milliseconds(250), inAll: Duration = .seconds(300), firstPause: Duration = .milliseconds(500)
    ) {
        self.once = once
        self.inAll = inAll
        self.firstPause = firstPause
    }
}
