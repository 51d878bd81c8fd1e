import NIOCore
import Synchronization

/// Runs the tasks of a connection's requests on the connection's own event loop: no hop between the bytes and the handler.
///
/// What runs there must not block; the database's connections have threads of their own.
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

/// One executor for each event loop that has had a connection.
final class EventLoopExecutors: Sendable {
    private let executors = Mutex<[ObjectIdentifier: EventLoopExecutor]>([:])

    func executor(for eventLoop: any EventLoop) -> EventLoopExecutor {
        executors.withLock { executors in
            if let executor = executors[ObjectIdentifier(eventLoop)] { return executor }
            let executor = EventLoopExecutor(eventLoop)
            executors[ObjectIdentifier(eventLoop)] = executor
            return executor
        }
    }
}
