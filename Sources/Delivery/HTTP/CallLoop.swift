import CCurl
import Glibc
import Persistence
import Synchronization

/// One thread that makes the calls of an ``HTTPCaller``, and runs the tasks that prefer it: what is signed, posted and
/// recorded on it wakes no other thread.
///
/// Locking: `inbox` guards what other threads hand over. They wake the thread only while `isWaiting`, which it sets
/// when it has found the inbox empty; libcurl keeps a wake-up that comes before the wait. Everything else is the
/// thread's alone. The thread retains the loop until ``stop()``, and ends when nothing is left to do.
final class CallLoop: TaskExecutor {
    private struct Inbox: Sendable {
        var jobs: [UnownedJob] = []
        var orders: [HTTPOrder] = []
        var hasAbandoned = false
        var isStopped = false
        var isWaiting = false

        var isEmpty: Bool { jobs.isEmpty && orders.isEmpty && !hasAbandoned }
    }

    private let inbox = Mutex(Inbox())
    private let multi: CurlMulti
    private let maximum: Int
    private let caFile: String?
    private let isBackground: Bool

    /// How much less of a processor background work gets than requests that want it at the same time: a tenth.
    private static let backgroundNice: Int32 = 10

    /// Starts the thread; `nil` when the system has none to give.
    /// - Parameters:
    ///   - maximum: of calls at a time; more orders wait.
    ///   - caFile: authorities in place of the system's.
    ///   - isBackground: whether requests go before it.
    init?(maximum: Int, caFile: String?, isBackground: Bool) {
        guard let multi = CurlMulti(connections: maximum) else { return nil }
        self.multi = multi
        self.maximum = maximum
        self.caFile = caFile
        self.isBackground = isBackground
        guard DetachedThread.start({ self.run() }) else { return nil }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        handOver { $0.jobs.append(unowned) }
    }

    /// Makes a call when its turn comes.
    func make(_ order: HTTPOrder) {
        handOver { $0.orders.append(order) }
    }

    /// Some order's flag was raised.
    func abandon() {
        handOver { $0.hasAbandoned = true }
    }

    /// Lets the thread end after what it was given.
    func stop() {
        handOver { $0.isStopped = true }
    }

    private func handOver(_ put: (inout Inbox) -> Void) {
        let mustWake = inbox.withLock { inbox in
            put(&inbox)
            defer { inbox.isWaiting = false }
            return inbox.isWaiting
        }
        if mustWake { multi.wake() }
    }

    private func run() {
        // Linux: of the calling thread. What refuses it leaves the thread as it is.
        if isBackground { setpriority(Int32(PRIO_PROCESS.rawValue), 0, Self.backgroundNice) }
        let executor = asUnownedTaskExecutor()
        let calls = CallsUnderWay(multi, maximum: maximum, caFile: caFile)
        while true {
            let given = inbox.withLock { inbox in
                defer {
                    inbox.jobs.removeAll()
                    inbox.orders.removeAll()
                    inbox.hasAbandoned = false
                }
                return inbox
            }
            for job in given.jobs { job.runSynchronously(on: executor) }
            if given.hasAbandoned { calls.giveUpAbandoned() }
            calls.make(given.orders)
            let isIdle = inbox.withLock { inbox in
                inbox.isWaiting = inbox.isEmpty && !(inbox.isStopped && calls.isEmpty)
                return inbox.isEmpty ? inbox.isWaiting : nil
            }
            switch isIdle {
            case true?: calls.wait()
            case false?: return
            case nil: break
            }
        }
    }
}
