import CEpoll
import Glibc
import Synchronization

/// Something whose descriptor a ``Reactor`` watches; called on the reactor's thread.
protocol Readable: AnyObject, Sendable {
    var descriptor: Int32 { get }
    func ready()
}

/// One thread that waits for many descriptors.
final class Reactor: @unchecked Sendable {
    private let epoll = epoll_create1(0)
    private let sources: [any Readable]
    private let isStopped = Atomic<Bool>(false)
    private let wakeUp = eventfd(0, Int32(EFD_NONBLOCK))
    private let isDone = Atomic<Bool>(false)

    init(_ sources: [any Readable]) {
        self.sources = sources
        for (index, source) in sources.enumerated() {
            precondition(postern_epoll(epoll, EPOLL_CTL_ADD, source.descriptor, EPOLLIN.rawValue, UInt64(index)) == 0)
        }
        precondition(postern_epoll(epoll, EPOLL_CTL_ADD, wakeUp, EPOLLIN.rawValue, .max) == 0)
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Reactor>.fromOpaque(context).takeRetainedValue().loop() }
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        eventfd_write(wakeUp, 1)
        while !isDone.load(ordering: .acquiring) { usleep(1000) }
    }

    private func loop() {
        var events = Array(repeating: epoll_event(), count: 64)
        while !isStopped.load(ordering: .acquiring) {
            let count = epoll_wait(epoll, &events, 64, -1)
            for event in events.prefix(Int(max(0, count))) where event.data.u32 != .max {
                sources[Int(event.data.u32)].ready()
            }
        }
        close(epoll)
        close(wakeUp)
        isDone.store(true, ordering: .releasing)
    }
}

/// Callers send on their own thread over a connection they hold by lease; one thread reads for all.
struct ReadinessSource: Strategy {
    private let pool: LeasePool<WatchedConnection>
    private let reactor: Reactor

    init(_ conninfo: String, connections: Int) {
        let connections = (0..<connections).map { _ in WatchedConnection(conninfo) }
        pool = LeasePool(connections)
        reactor = Reactor(connections)
    }

    func run(_ request: Request, caller: Int) async -> Bool {
        let connection = await pool.checkout()
        defer { pool.checkin(connection) }
        return await connection.answer(to: request).isExpected(request)
    }

    func close() async { reactor.stop() }
}

/// The lock hands the session from the sender to the reactor's thread and back.
final class WatchedConnection: Readable {
    private let session: Session
    private let waiting = Mutex<CheckedContinuation<Answer, Never>?>(nil)
    let descriptor: Int32

    init(_ conninfo: String) {
        session = Session(conninfo)
        descriptor = session.descriptor
    }

    func answer(to request: Request) async -> Answer {
        await withCheckedContinuation { continuation in
            waiting.withLock {
                $0 = continuation
                session.send(request)
            }
        }
    }

    func ready() {
        let done = waiting.withLock { waiting -> (CheckedContinuation<Answer, Never>, Answer)? in
            guard let answer = session.receive(), let continuation = waiting else { return nil }
            waiting = nil
            return (continuation, answer)
        }
        if let (continuation, answer) = done { continuation.resume(returning: answer) }
    }
}
