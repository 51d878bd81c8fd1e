import CLibPQ

/// One PostgreSQL session. libpq allows one thread at a time per `PGconn`: the thread that has the executor's turn.
/// That is the connection's own thread, which alone may block, or briefly the thread of the caller that holds the lease
/// (``onCallingThread(_:)``).
///
/// Applications meet it as the argument of ``Database/transaction(_:_:)``; its one public verb is ``query(_:_:_:)``.
public actor Connection {
    private nonisolated let thread: ThreadExecutor
    /// Tells a caller that the server has spoken; `nil` when all waiting is done on the connection's thread.
    nonisolated let watch: Watch?
    /// Ends the operation that is under way; callable from anywhere.
    nonisolated let cancellation = CancellationSignal()
    /// Jobs of this actor run on its own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    private var handle: ConnectionHandle?
    private let notices = NoticeWatch()
    private let configuration: DatabaseConfiguration
    /// What an idle session may wait for.
    let statementTimeout: Duration
    /// Statements known to the server's session.
    var prepared: Set<Statement> = []
    var parameters = ParameterBuffer()
    /// The number of the operation under way.
    var operation: UInt64 = 0
    /// The result so far of an answer that is not complete: the first failed result, or the last one.
    var received: ResultHandle?
    var transaction = TransactionState.none
    /// Told of the statements of the transaction under way.
    var trail: TransactionTrail?

    /// A session that is not connected yet; `nil` when the system has no thread to give.
    init?(_ configuration: DatabaseConfiguration, readiness: ReadinessSource? = nil) {
        guard let thread = ThreadExecutor() else { return nil }
        self.thread = thread
        watch = readiness.map { $0.watch() }
        self.configuration = configuration
        statementTimeout = configuration.statementTimeout
    }

    isolated deinit {
        received = nil
        handle = nil
        thread.stop()
    }

    /// Runs `body`, which must not block, on the calling thread; `nil` while the connection's own thread is at work.
    ///
    /// `body` escapes by its type alone: the check of `withoutActuallyEscaping` would write the length of this file's
    /// path on the machine that compiles into the binary.
    nonisolated func onCallingThread<R: Sendable>(_ body: @escaping (isolated Connection) -> R) -> R? {
        // What `assumeIsolated` does, without asking which thread this is: the turn, a lock that was taken in this very
        // call, is the proof. A wrong answer of the runtime must not end the process.
        let body = unsafeBitCast(body, to: ((Connection) -> R).self)
        return thread.onCallingThread {
            assert(thread.isIsolatingCurrentContext() == true)
            return body(self)
        }
    }

    /// Asks for the end of operation `number`. Never blocks.
    nonisolated func cancel(_ number: UInt64) {
        cancellation.cancel(number)
        watch?.interrupt()
    }

    /// The libpq session, `nil` before ``connect(timeouts:)``.
    var session: OpaquePointer? { handle?.pointer }

    /// Connects, trying every host of the connection string, and verifies the settings. Blocks this connection's thread
    /// only.
    /// - Parameter timeouts: whether statement and lock timeouts apply; a migration has none.
    func connect(timeouts: Bool = true) throws(ConnectFailure) {
        let settings = try SessionSettings(configuration, conninfo: configuration.conninfo, timeouts: timeouts)
        let opened = settings.withPointers { keywords, values in PQconnectdbParams(keywords, values, 1) }
        guard let opened else { throw ConnectFailure(reason: .serverResources, message: "out of memory") }
        let handle = ConnectionHandle(adopting: opened)
        notices.install(on: opened)
        guard PQstatus(opened) == CONNECTION_OK else {
            throw Self.refusal(Self.message(of: opened))
        }
        guard PQsetnonblocking(opened, 1) == 0 else {
            throw ConnectFailure(reason: .connectFailed, message: "cannot switch to non-blocking mode")
        }
        self.handle = consume handle
        prepared = []
        try verifySettings()
    }

    /// What `synchronous_commit` really is decides whether an answered commit survives a crash, and the functions are
    /// written for READ COMMITTED: ask, do not assume. A pooler is refused: it shares PostgreSQL's sessions between
    /// clients, which loses prepared statements and LISTEN. It shows by another process number than PostgreSQL's.
    private func verifySettings() throws(ConnectFailure) {
        let names = ["synchronous_commit", "default_transaction_isolation", "transaction_read_only"]
        let sql = "SELECT " + names.map { "current_setting('\($0)')" }.joined(separator: ", ")
        var values: [String] = []
        var process: String?
        do {
            let result = try simpleQuery("\(sql), pg_backend_pid()", within: configuration.connectTimeout)
            if result.isSuccess, PQntuples(result.pointer) == 1, PQnfields(result.pointer) == Int32(names.count + 1) {
                values = names.indices.map { Self.text(result.pointer, Int32($0)) }
                process = Self.text(result.pointer, Int32(names.count))
            }
        } catch {
            throw ConnectFailure(reason: .connectFailed, message: "the connection was lost while it was being set up")
        }
        if let process, let session, process != "\(PQbackendPID(session))" {
            throw ConnectFailure(reason: .unsafeSettings, message: Self.poolerMessage)
        }
        guard values.count == names.count, values[0] == "on", values[1] == "read committed" else {
            let shown = zip(names, values).map { "\($0)=\($1)" }.joined(separator: ", ")
            throw ConnectFailure(
                reason: .unsafeSettings,
                message: "the session has other settings than were asked for, synchronous_commit=on and "
                    + "default_transaction_isolation=read committed: \(shown)")
        }
        guard values[2] == "off" else {
            throw ConnectFailure(reason: .readOnly, message: "the server accepts no writes")
        }
    }

    /// Whether the pool may lend the session to someone else: connected, in no transaction, nothing unread.
    var isReusable: Bool {
        guard let session, !notices.isTerminating else { return false }
        return PQstatus(session) == CONNECTION_OK && PQtransactionStatus(session) == PQTRANS_IDLE
    }

    /// Whether the server is known to have ended the session.
    var isTerminated: Bool {
        guard let session else { return true }
        return notices.isTerminating || PQstatus(session) != CONNECTION_OK
    }

    /// Closes the session at once; the server rolls back an open transaction.
    func disconnect() {
        received = nil
        handle = nil
    }

    private static let poolerMessage =
        "a connection pooler (PgBouncer or the like) is between this process and PostgreSQL: "
        + "name PostgreSQL itself in the database URL"

    /// Why the server refused the connection. A pooler may refuse the settings of the start-up packet: `options`.
    private static func refusal(_ message: String) -> ConnectFailure {
        guard message.contains("unsupported startup parameter") else {
            return ConnectFailure(reason: .connectFailed, message: message)
        }
        return ConnectFailure(reason: .unsafeSettings, message: "\(poolerMessage) (\(message))")
    }

    private static func text(_ result: OpaquePointer, _ column: Int32) -> String {
        PQgetvalue(result, 0, column).map { String(cString: $0) } ?? ""
    }

    private static func message(of session: OpaquePointer) -> String {
        guard let text = PQerrorMessage(session) else { return "unknown" }
        return String(cString: text).split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
