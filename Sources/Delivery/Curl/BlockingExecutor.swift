import Dispatch

/// Runs an actor on a thread that may block, apart from the threads of Swift concurrency.
///
/// A serial queue of its own: Dispatch gives it a thread when there is work and takes it back afterwards.
final class BlockingExecutor: SerialExecutor {
    private let queue: DispatchQueue

    init(label: String) {
        queue = DispatchQueue(label: label)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
