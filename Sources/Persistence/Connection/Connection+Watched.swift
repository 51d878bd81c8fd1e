import CLibPQ

/// Fast path for a statement that is already prepared: it is sent and received on the caller's thread without blocking,
/// and the caller suspends in ``Watch`` until the server answers. Everything else continues on the connection's own
/// thread.
extension Connection {
    /// The state of a statement after a step on the caller's thread.
    enum Progress<R: Sendable>: Sendable {
        /// Sent; the answer, or the rest of it, will arrive on this socket.
        case waiting(socket: Int32)
        case done(Outcome<[R]>)
        /// The connection's thread must continue it from its present state.
        case leftToThread
    }

    /// Runs one statement in a transaction of its own: one round trip, two when it must be prepared first.
    nonisolated func run<R: Sendable>(
        _ statement: Statement, _ values: [Parameter], operation: UInt64,
        _ decode: @escaping @Sendable (borrowing Row) throws(StoreError) -> R
    ) async -> Outcome<[R]> {
        let deadline = ContinuousClock.now + statementTimeout
        guard let watch, let begun = onCallingThread({ $0.begin(statement, values, operation: operation, as: R.self) })
        else {
            return await runBlocking(statement, values, operation: operation, decode)
        }
        guard var progress = begun else {
            return await runBlocking(statement, values, operation: operation, decode)
        }
        while true {
            switch progress {
            case .done(let outcome): return outcome
            case .leftToThread: return await resume(statement, values, deadline: deadline, decode)
            case .waiting(let socket):
                let signal = await watch.wait(for: socket, until: deadline) { cancellation.isCancelled(operation) }
                progress =
                    signal == .readable
                    ? onCallingThread { $0.receive(statement, decode) } ?? .leftToThread : .leftToThread
            }
        }
    }

    /// Sends the statement; `nil`, with nothing done, when it is not prepared yet.
    private func begin<R>(
        _ statement: Statement, _ values: [Parameter], operation: UInt64, as _: R.Type
    ) -> Progress<R>? {
        guard prepared.contains(statement) else { return nil }
        start(operation)
        do throws(Failure) {
            let session = try liveSession()
            try encode(values)
            guard send(statement, on: session) else { throw Failure(.unavailable(.connectionLost), .onceMore) }
            return PQflush(session) == 0 ? .waiting(socket: PQsocket(session)) : .leftToThread
        } catch {
            return .done(Outcome(result: .failure(error), isReusable: isReusable))
        }
    }

    /// Reads the part of the answer that has arrived.
    private func receive<R>(
        _ statement: Statement, _ decode: (borrowing Row) throws(StoreError) -> R
    ) -> Progress<R> {
        guard let session, PQconsumeInput(session) == 1 else { return .leftToThread }
        while PQisBusy(session) == 0 {
            if let next = PQgetResult(session) {
                keep(ResultHandle(adopting: next))
                continue
            }
            guard received?.isSuccess == true, let result = received.take() else { return .leftToThread }
            do {
                return .done(Outcome(result: .success(try result.decode(decode)), isReusable: isReusable))
            } catch {
                return .done(Outcome(result: .failure(Failure(error)), isReusable: isReusable))
            }
        }
        return .waiting(socket: PQsocket(session))
    }

    /// Goes on where the caller's thread left off: a refusal, a lost connection, a cancellation or a deadline.
    private func resume<R: Sendable>(
        _ statement: Statement, _ values: [Parameter], deadline: ContinuousClock.Instant,
        _ decode: (borrowing Row) throws(StoreError) -> R
    ) -> Outcome<[R]> {
        var isSent = true
        let result = preparingAgain { () throws(Failure) in
            guard isSent else { return try runOnce(statement, values, decode) }
            isSent = false
            guard let session else { throw interrupted(.lost, effect: statement.effect) }
            return try finish(statement, on: session, deadline: deadline, decode)
        }
        return Outcome(result: result, isReusable: isReusable)
    }
}
