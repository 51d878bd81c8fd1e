import Glibc
import Synchronization

/// Runs an actor's jobs one after another on a thread of its own, where blocking is harmless. Between jobs,
/// non-blocking work may run on a caller's thread (``onCallingThread(_:)``).
///
/// Locking: a thread that runs code of the actor, the executor's own or a caller's, holds `turn` and stores its
/// identity in `holder`. ``isIsolatingCurrentContext()`` compares that identity; this is the proof of isolation. `turn`
/// is a pthread mutex, whose `trylock` reports a lock that is held and never traps, not even on the thread that holds
/// it. `jobs` guards the queue. `wake` counts the jobs in it (plus one for ``stop()``), so that the thread sleeps in
/// the kernel until there is one. A job is appended before the semaphore is posted and taken after the wait, so no job
/// is lost. The thread retains the executor until ``stop()``, which the actor calls from its `deinit`. No job can be
/// left then, because jobs retain their actor. So the executor outlives its actor.
final class ThreadExecutor: SerialExecutor, @unchecked Sendable {
    private struct Jobs {
        var waiting: [UnownedJob] = []
        var isStopped = false
    }

    private let jobs = Mutex(Jobs())
    private let turn: UnsafeMutablePointer<pthread_mutex_t>
    /// The thread that has the turn, 0 for none.
    private let holder = Atomic<UInt>(0)
    private let wake: UnsafeMutablePointer<sem_t>

    /// Starts the thread; `nil` when the system has none to give.
    init?() {
        wake = .allocate(capacity: 1)
        wake.initialize(to: sem_t())
        sem_init(wake, 0, 0)
        turn = .allocate(capacity: 1)
        turn.initialize(to: pthread_mutex_t())
        pthread_mutex_init(turn, nil)
        guard DetachedThread.start({ self.run() }) else { return nil }
    }

    deinit {
        sem_destroy(wake)
        wake.deallocate()
        pthread_mutex_destroy(turn)
        turn.deallocate()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let unowned = UnownedJob(job)
        jobs.withLock { $0.waiting.append(unowned) }
        sem_post(wake)
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Runs `body`, which must not block, on the calling thread in place of a job; `nil` while a job runs, also when
    /// this is the thread that runs it: after an `await` the caller may still be on the connection's thread.
    ///
    /// Never inlined: C declares `pthread_self` a constant, so the optimiser reuses its value in an async function,
    /// also after an `await` that continued on another thread. A function that is not async and is never inlined calls
    /// it each time.
    @inline(never)
    func onCallingThread<R: Sendable>(_ body: () -> R) -> R? {
        guard pthread_mutex_trylock(turn) == 0 else { return nil }
        defer { pthread_mutex_unlock(turn) }
        return holding(body)
    }

    /// Traps unless the calling thread has the turn. The runtime asks only when ``isIsolatingCurrentContext()`` gave no
    /// answer.
    func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on this connection's turn")
    }

    @inline(never)
    func isIsolatingCurrentContext() -> Bool? {
        holder.load(ordering: .relaxed) == UInt(pthread_self())
    }

    private func holding<R>(_ body: () -> R) -> R {
        holder.store(UInt(pthread_self()), ordering: .relaxed)
        defer { holder.store(0, ordering: .relaxed) }
        return body()
    }

    /// Lets the thread end after the jobs that are already queued.
    func stop() {
        jobs.withLock { $0.isStopped = true }
        sem_post(wake)
    }

    private func run() {
        let executor = asUnownedSerialExecutor()
        var batch: [UnownedJob] = []
        while true {
            while sem_wait(wake) != 0 {}  // EINTR
            let isStopped = jobs.withLock { jobs in
                swap(&batch, &jobs.waiting)
                return jobs.isStopped
            }
            pthread_mutex_lock(turn)
            holding { for job in batch { job.runSynchronously(on: executor) } }
            pthread_mutex_unlock(turn)
            batch.removeAll(keepingCapacity: true)
            if isStopped { return }
        }
    }
}
