extension Connection {
    /// All rows of a call within the transaction.
    func all<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:]
    ) throws(StoreError) -> [Result] {
        try query(call.statement, call.values(arguments), call.decode)
    }

    /// The row of a call that returns one, within the transaction.
    func one<Result: Sendable>(_ call: FunctionCall<Result>, _ arguments: Arguments) throws(StoreError) -> Result {
        guard let row = try all(call, arguments).first else { throw .malformedResult }
        return row
    }
}
