public import Persistence

extension DatabaseClock {
    /// Refuses to sign while this process's clock is too far from the database's. Called before a factor is consumed
    /// and before a permit is taken.
    /// - Throws: `temporarily_unavailable`: another node, or this one later, serves the same request.
    public func require() throws(TokenError) {
        guard !isWrong else {
            throw .unavailable("the process clock differs from the database's by more than 60 s")
        }
    }
}
