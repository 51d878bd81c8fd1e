import Tracing

extension Connection {
    /// All rows of a call within the transaction.
    func all<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:]
    ) throws(StoreError) -> [Result] {
        guard let trail else { return try query(call.statement, call.values(arguments), call.decode) }
        let began = DefaultTracerClock.now
        do throws(StoreError) {
            let rows = try query(call.statement, call.values(arguments), call.decode)
            trail.add(call.function, since: began, .success(rows.count))
            return rows
        } catch {
            trail.add(call.function, since: began, .failure(error))
            throw error
        }
    }

    /// The row of a call that returns one, within the transaction.
    func one<Result: Sendable>(_ call: FunctionCall<Result>, _ arguments: Arguments) throws(StoreError) -> Result {
        guard let row = try all(call, arguments).first else { throw .malformedResult }
        return row
    }
}
