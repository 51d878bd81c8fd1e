import CLibPQ

/// The state of a transaction.
enum TransactionState {
    /// No transaction is open; each statement is its own transaction.
    case none
    /// Promised but not begun: BEGIN travels with the first statement.
    case pending
    /// Begun.
    case open
    /// Refused or interrupted; nothing more is sent.
    case failed(Failure)
}

extension Connection {
    /// Runs `body` between BEGIN and COMMIT. It is synchronous: no suspension point sits inside a transaction.
    func transact<R: Sendable>(
        operation: UInt64, _ trail: TransactionTrail?,
        _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) -> Outcome<R> {
        start(operation)
        self.trail = trail
        defer { self.trail = nil }
        let result = preparingAgain { () throws(Failure) in
            trail?.restart()
            defer { transaction = .none }
            return try transactOnce(body)
        }
        return Outcome(result: result, isReusable: isReusable)
    }

    private func transactOnce<R: Sendable>(
        _ body: @Sendable (isolated Connection) throws(StoreError) -> R
    ) throws(Failure) -> R {
        _ = try liveSession()
        transaction = .pending
        let value: R
        do {
            value = try body(self)
        } catch {
            let failure = if case .failed(let failure) = transaction { failure } else { Failure(error) }
            rollback()
            throw failure
        }
        switch transaction {
        case .none, .pending: return value
        case .open:
            try commit()
            return value
        case .failed(let failure):  // the body swallowed it; nothing of this can be committed
            rollback()
            throw failure
        }
    }

    /// Runs a statement of the transaction.
    ///
    /// - Throws: the reason nothing of the transaction will happen; let it pass.
    public func query<R>(
        _ statement: Statement, _ parameters: [Parameter], _ decode: (borrowing Row) throws(StoreError) -> R
    ) throws(StoreError) -> [R] {
        do throws(Failure) {
            switch transaction {
            case .none: throw Failure(.rejected(sqlstate: "25P01"))
            case .failed(let failure): throw failure
            case .pending, .open: return try step(statement, parameters, decode)
            }
        } catch {
            transaction = .failed(error)
            throw error.error
        }
    }

    private func step<R>(
        _ statement: Statement, _ values: [Parameter], _ decode: (borrowing Row) throws(StoreError) -> R
    ) throws(Failure) -> [R] {
        guard !cancellation.isCancelled(operation) else { throw Failure(.cancelled) }
        guard let session else { throw Failure(.unavailable(.connectionLost), .onceMore) }
        try encode(values)
        let deadline = ContinuousClock.now + statementTimeout
        // Losing the connection before COMMIT is sent means that nothing happened: as harmless as reading.
        try prepare(statement, on: session, deadline: deadline)
        let result: ResultHandle
        do throws(Interruption) {
            if case .open = transaction {
                guard send(statement, on: session) else { throw Interruption.lost }
                result = try collect(session, deadline: deadline, policy: .stop)
            } else {
                result = try begin(with: statement, on: session, deadline: deadline)
            }
        } catch {
            throw interrupted(error, effect: .readOnly)
        }
        guard result.isSuccess else {
            guard !isTerminated else { throw interrupted(.lost, effect: .readOnly) }
            throw refused(result)
        }
        do {
            return try result.decode(decode)
        } catch {
            throw Failure(error)
        }
    }

    /// Sends BEGIN and the first statement together and waits once.
    private func begin(
        with statement: Statement, on session: OpaquePointer, deadline: ContinuousClock.Instant
    ) throws(Interruption) -> ResultHandle {
        guard PQenterPipelineMode(session) == 1,
            PQsendQueryParams(session, "BEGIN", 0, nil, nil, nil, nil, 0) == 1,
            send(statement, on: session), PQpipelineSync(session) == 1
        else { throw .lost }
        try flush(session, deadline: deadline)
        transaction = .open
        var deadline = deadline
        var kept: ResultHandle?
        var hasFailed = false
        while true {
            guard let next = try nextResult(session, deadline: &deadline, policy: .stop) else {
                if isTerminated { throw .lost }
                continue  // between two statements
            }
            if next.status == PGRES_PIPELINE_SYNC { break }
            if hasFailed { continue }
            hasFailed = !next.isSuccess
            kept = consume next
        }
        guard let kept, PQexitPipelineMode(session) == 1 else { throw .lost }
        return kept
    }

    /// After COMMIT was sent, only its answer shows whether it happened, so it is never cancelled.
    private func commit() throws(Failure) {
        guard let session else { throw Failure(.unavailable(.connectionLost), .onceMore) }
        guard PQsendQuery(session, "COMMIT") == 1 else {
            disconnect()
            throw Failure(.unavailable(.connectionLost), .onceMore)
        }
        let result: ResultHandle
        do {
            result = try collect(session, deadline: .now + statementTimeout, policy: .finish)
        } catch {
            disconnect()
            throw Failure(.inDoubt)
        }
        guard result.isSuccess else {
            guard !isTerminated else {
                disconnect()
                throw Failure(.inDoubt)
            }
            throw refused(result)
        }
        // A failed transaction is "committed" with the answer ROLLBACK.
        guard let tag = PQcmdStatus(result.pointer), String(cString: tag) == "COMMIT" else {
            throw Failure(.rejected(sqlstate: "25P02"))
        }
    }

    /// Ends a transaction that failed; a session that cannot even do that is closed.
    private func rollback() {
        guard let session, !isTerminated else { return disconnect() }
        switch PQtransactionStatus(session) {
        case PQTRANS_IDLE: return
        case PQTRANS_INTRANS, PQTRANS_INERROR:
            guard let result = try? simpleQuery("ROLLBACK", within: statementTimeout), result.isSuccess else {
                return disconnect()
            }
        default: disconnect()
        }
    }
}
