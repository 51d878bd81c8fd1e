import Tracing

extension Database {
    /// Runs `body` between BEGIN and COMMIT on the connection's thread, in the first cluster.
    ///
    /// `body` is synchronous, so nothing interleaves with the transaction, and may run more than once: a connection
    /// lost before COMMIT was sent, a serialization failure and a deadlock start it again. It must have no effect but
    /// its statements. The connection counts as the server's own, not as a realm's.
    /// - Parameter name: what its span is called.
    /// - Throws: ``StoreError/inDoubt`` when the answer to COMMIT was lost.
    public func transaction<R: Sendable>(
        _ name: String, _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) async throws(StoreError) -> R {
        guard let tracer else { return try await first.transaction(nil, body) }
        let trail = TransactionTrail()
        let began = DefaultTracerClock.now
        do throws(StoreError) {
            let value = try await first.transaction(trail, body)
            trail.export(name, since: began, failure: nil, tracer)
            return value
        } catch {
            trail.export(name, since: began, failure: error, tracer)
            throw error
        }
    }
}

extension TransactionTrail {
    /// Makes a span of the transaction and one of each statement of its last attempt, now that it has ended. A worker
    /// that looked for work and found none leaves no spans.
    fileprivate func export(
        _ name: String, since began: DefaultTracerClock.Timestamp, failure: StoreError?, _ tracer: some Tracer
    ) {
        let steps = steps
        if failure == nil, steps.count < 2, steps.allSatisfy(\.isEmpty) { return }
        let span = tracer.startSpan(name, context: .current ?? .topLevel, ofKind: .client, at: began)
        for step in steps {
            let below = tracer.startSpan(step.function, context: span.context, ofKind: .client, at: step.began)
            below.describeCall(step.function)
            switch step.outcome {
            case .success(let rows): below.attributes["db.response.returned_rows"] = rows
            case .failure(let error): below.describeFailure(error)
            }
            below.end(at: step.ended)
        }
        span.attributes["db.system.name"] = "postgresql"
        if let failure { span.describeFailure(failure) }
        span.end()
    }
}

extension TransactionTrail.Step {
    fileprivate var isEmpty: Bool {
        if case .success(0) = outcome { true } else { false }
    }
}
