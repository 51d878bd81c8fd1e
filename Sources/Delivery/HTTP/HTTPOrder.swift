/// A call to be made, and who waits for its answer.
struct HTTPOrder: Sendable {
    let call: HTTPCall
    /// When it must be over, besides its own limits.
    let deadline: ContinuousClock.Instant
    /// Whether the endpoint is only connected to.
    var isConnectionOnly = false
    /// Raised when the caller was cancelled.
    let abandoned: AbandonFlag
    /// Called once, on the loop's thread.
    let answer: @Sendable (HTTPAnswer) -> Void
}
