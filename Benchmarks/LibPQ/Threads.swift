import CLibPQ
import Glibc
import Logging
import Persistence

/// The product as it is.
struct Product: Strategy {
    private let database: Database
    private let running: Task<Void, Never>

    init(_ conninfo: String, connections: Int) {
        var configuration = DatabaseConfiguration(conninfo: conninfo, connections: connections)
        configuration.checkoutTimeout = .seconds(5)
        let database = Database(configuration: configuration, logger: Logger(label: "bench"))
        self.database = database
        running = Task { await database.run() }
    }

    func run(_ request: Request, caller: Int) async -> Bool {
        do {
            let rows = try await database.query(request.statement, request.parameters) { (row) throws(StoreError) in
                request.expected == 1 ? try row.bool(0) : try row.text(0).utf8.first == request.expected
            }
            return rows == [true]
        } catch {
            return false
        }
    }

    func close() async {
        running.cancel()
        await running.value
    }
}

/// The product's design without its care: a thread per connection, a lease, poll and read.
struct Threads: Strategy {
    private let pool: LeasePool<ThreadedConnection>

    init(_ conninfo: String, connections: Int, looksFirst: Bool) {
        pool = LeasePool((0..<connections).map { _ in ThreadedConnection(conninfo, looksFirst: looksFirst) })
    }

    func run(_ request: Request, caller: Int) async -> Bool {
        let connection = await pool.checkout()
        defer { pool.checkin(connection) }
        return await connection.run(request)
    }

    func close() async {}
}

actor ThreadedConnection {
    private nonisolated let thread: ThreadExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
    private let session: Session
    /// Whether a poll that does not wait comes before every request, as the product's look for a dead session.
    private let looksFirst: Bool

    init(_ conninfo: String, looksFirst: Bool) {
        guard let thread = ThreadExecutor() else { fatalError("no thread") }
        self.thread = thread
        self.looksFirst = looksFirst
        session = Session(conninfo)
    }

    isolated deinit { thread.stop() }

    func run(_ request: Request) -> Bool {
        var descriptor = pollfd(fd: session.descriptor, events: Int16(POLLIN), revents: 0)
        if looksFirst, poll(&descriptor, 1, 0) != 0 { fatalError("dead") }
        session.send(request)
        while true {
            poll(&descriptor, 1, 5000)
            if let answer = session.receive() { return answer.isExpected(request) }
        }
    }
}
