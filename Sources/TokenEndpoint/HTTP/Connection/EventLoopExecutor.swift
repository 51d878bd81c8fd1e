import NIOCore
import Synchronization

/// Runs the tasks of a connection's requests on the connection's own event loop: no hop between the bytes and the
/// handler.
///
/// The preference is a hint. A task may continue on another thread after an `await`, so code that touches the channel
/// asks `inEventLoop` first (docs/decisions/0022). What runs here must not block; the database's connections have
/// threads of their own.
final class EventLoopExecutor: TaskExecutor {
    private let eventLoop: any EventLoop

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// What the connections of one event loop share.
struct ConnectionLoop: Sendable {
    let executor: EventLoopExecutor
    let timer: NIOLoopBound<ConnectionTimer>
}

/// One ``ConnectionLoop`` for each event loop that has had a connection.
final class ConnectionLoops: Sendable {
    private let loops = Mutex<[ObjectIdentifier: ConnectionLoop]>([:])

    /// Must be called on `eventLoop`.
    func loop(for eventLoop: any EventLoop) -> ConnectionLoop {
        loops.withLock { loops in
            if let loop = loops[ObjectIdentifier(eventLoop)] { return loop }
            let loop = ConnectionLoop(
                executor: EventLoopExecutor(eventLoop),
                timer: NIOLoopBound(ConnectionTimer(eventLoop), eventLoop: eventLoop))
            loops[ObjectIdentifier(eventLoop)] = loop
            return loop
        }
    }
}

/// Checks the deadlines of all connections of one event loop once a second: one timer, not one per connection. Used on
/// its event loop only.
final class ConnectionTimer {
    private static let interval = TimeAmount.seconds(1)

    private let eventLoop: any EventLoop
    private var handlers: [ObjectIdentifier: ConnectionHandler] = [:]
    private var isRunning = false

    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func add(_ handler: ConnectionHandler) {
        handlers[ObjectIdentifier(handler)] = handler
        guard !isRunning else { return }
        isRunning = true
        schedule()
    }

    func remove(_ handler: ConnectionHandler) {
        handlers[ObjectIdentifier(handler)] = nil
    }

    private func schedule() {
        eventLoop.assumeIsolated().scheduleTask(in: Self.interval) { self.check() }
    }

    private func check() {
        let now = eventLoop.now
        // A copy: a connection that ends takes itself out.
        for handler in Array(handlers.values) { handler.checkTime(now) }
        isRunning = !handlers.isEmpty
        if isRunning { schedule() }
    }
}
