import Tracing

extension Database {
    /// All rows of a call.
    func all<Result: Sendable>(
        _ call: FunctionCall<Result>, _ arguments: Arguments = [:], of realm: UUIDValue? = nil
    ) async throws(StoreError) -> [Result] {
        // Without a recorded span above it a call costs one look at a task-local value, and without a tracer not even
        // that.
        guard let tracer, let context = ServiceContext.current else {
            return try await query(call.statement, call.values(arguments), of: realm, call.decode)
        }
        let span = tracer.startSpan(call.function, context: context, ofKind: .client)
        defer { span.end() }
        span.describeCall(call.function)
        do throws(StoreError) {
            let rows = try await query(call.statement, call.values(arguments), of: realm, call.decode)
            span.attributes["db.response.returned_rows"] = rows.count
            return rows
        } catch {
            span.describeFailure(error)
            throw error
        }
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

extension Tracing.Span {
    /// What is said of a call.
    func describeCall(_ function: String) {
        updateAttributes { attributes in
            attributes["db.system.name"] = "postgresql"
            attributes["db.operation.name"] = function
        }
    }

    /// How a call or a transaction failed, without a text of the database.
    func describeFailure(_ error: StoreError) {
        attributes["error.type"] = error.kind
        setStatus(SpanStatus(code: .error))
    }
}
