extension Database {
    /// All rows of a call.
    func all<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:], of realm: UUIDValue? = nil
    ) async throws(StoreError) -> [Result] {
        try await query(call.statement, call.values(arguments), of: realm, call.decode)
    }

    /// The first row of a call.
    func first<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:]
    ) async throws(StoreError) -> Result? {
        try await all(call, arguments).first
    }

    /// The row of a call that returns one. - Parameter realm: whose cluster to take, when no argument says it.
    func one<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:], of realm: UUIDValue? = nil
    ) async throws(StoreError) -> Result {
        guard let row = try await all(call, arguments, of: realm).first else { throw .malformedResult }
        return row
    }
}
