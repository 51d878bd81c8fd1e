import CLibPQ

extension Connection {
    /// Runs one statement in a transaction of its own on the connection's thread: one round trip, two when it must be
    /// prepared first.
    func runBlocking<R: Sendable>(
        _ statement: Statement, _ values: [Parameter], operation: UInt64,
        _ decode: (borrowing Row) throws(StoreError) -> R
    ) -> Outcome<[R]> {
        start(operation)
        let result = preparingAgain { () throws(Failure) in
            try runOnce(statement, values, decode)
        }
        return Outcome(result: result, isReusable: isReusable)
    }

    func runOnce<R>(
        _ statement: Statement, _ values: [Parameter], _ decode: (borrowing Row) throws(StoreError) -> R
    ) throws(Failure) -> [R] {
        let session = try liveSession()
        try encode(values)
        let deadline = ContinuousClock.now + statementTimeout
        try prepare(statement, on: session, deadline: deadline)
        guard send(statement, on: session) else { throw Failure(.unavailable(.connectionLost), .onceMore) }
        return try finish(statement, on: session, deadline: deadline, decode)
    }

    /// Forgets the operation before.
    func start(_ operation: UInt64) {
        self.operation = operation
        transaction = .none
        received = nil
    }

    /// Waits for the answer to what was sent, and judges it.
    func finish<R>(
        _ statement: Statement, on session: OpaquePointer, deadline: ContinuousClock.Instant,
        _ decode: (borrowing Row) throws(StoreError) -> R
    ) throws(Failure) -> [R] {
        let policy: CancellationPolicy = statement.effect == .readOnly ? .stop : .finish
        let result: ResultHandle
        do {
            result = try collect(session, deadline: deadline, policy: policy)
        } catch {
            throw interrupted(error, effect: statement.effect)
        }
        guard result.isSuccess else {
            guard !isTerminated else { throw interrupted(.lost, effect: statement.effect) }
            throw refused(result)
        }
        do {
            return try result.decode(decode)
        } catch {
            throw Failure(error)
        }
    }

    /// The session, if the server has not ended it and the caller still waits.
    func liveSession() throws(Failure) -> OpaquePointer {
        guard !cancellation.isCancelled(operation) else { throw Failure(.cancelled) }
        guard let session, !isDead(session) else {
            disconnect()
            throw Failure(.unavailable(.connectionLost), .anotherConnection)
        }
        return session
    }

    func encode(_ values: [Parameter]) throws(Failure) {
        do { try parameters.encode(values) } catch { throw Failure(error) }
    }

    /// Makes the statement known to the session unless it is. The types of the parameters encoded last count.
    func prepare(
        _ statement: Statement, on session: OpaquePointer, deadline: ContinuousClock.Instant
    ) throws(Failure) {
        if prepared.contains(statement) { return }
        let types = parameters.types
        guard PQsendPrepare(session, statement.name, statement.sql, Int32(types.count), types) == 1 else {
            throw Failure(.unavailable(.connectionLost), .onceMore)
        }
        let result: ResultHandle
        do {
            result = try collect(session, deadline: deadline, policy: .stop)
        } catch {
            throw interrupted(error, effect: .readOnly)
        }
        guard result.isSuccess else {
            guard !isTerminated else { throw interrupted(.lost, effect: .readOnly) }
            throw refused(result)
        }
        prepared.insert(statement)
    }

    /// Hands a prepared statement with the encoded parameters to libpq.
    func send(_ statement: Statement, on session: OpaquePointer) -> Bool {
        parameters.withPointers { count, values, lengths, formats in
            PQsendQueryPrepared(session, statement.name, count, values, lengths, formats, 1) == 1
        }
    }

    /// Runs `body` a second time when the server had lost the statements prepared on this session.
    func preparingAgain<R>(_ body: () throws(Failure) -> R) -> Result<R, Failure> {
        do {
            return .success(try body())
        } catch {
            guard error.remedy == .prepareAgain, forgetStatements() else { return .failure(error) }
        }
        do { return .success(try body()) } catch { return .failure(error) }
    }

    /// Drops every prepared statement on both sides. - Returns: whether the session still works.
    private func forgetStatements() -> Bool {
        prepared = []
        guard let result = try? simpleQuery("DEALLOCATE ALL", within: statementTimeout) else {
            disconnect()
            return false
        }
        return result.isSuccess
    }

    /// The failure of an exchange without an answer. The session is closed: its state is unknown.
    func interrupted(_ interruption: Interruption, effect: Statement.Effect) -> Failure {
        let wasCancelled = cancellation.isCancelled(operation)
        disconnect()
        switch (effect, interruption) {
        case (.once, _): return Failure(.inDoubt)
        case (_, .lost): return Failure(.unavailable(.connectionLost), .onceMore)
        case (_, .overdue): return Failure(wasCancelled ? .cancelled : .timedOut)
        }
    }

    /// The failure behind a refusal. A server that takes no writes is left at once.
    func refused(_ result: borrowing ResultHandle) -> Failure {
        let failure = Failure(refusal: result, cancelled: cancellation.isCancelled(operation))
        if failure.error == .unavailable(.readOnly) { disconnect() }
        return failure
    }
}
