import CEpoll
import Glibc
import Synchronization

/// One thread that waits, by epoll, for the sockets of many connections and resumes their waiters. It never reads,
/// writes or calls libpq: only the holder of a connection's lease uses the session.
final class ReadinessSource: Sendable {
    private let poller: Poller

    /// Starts the thread; `nil` when the system has no thread or descriptor to give.
    /// - Parameter precision: how late a waiter may learn of its deadline; a quarter of a second at most.
    init?(precision: Duration) {
        guard let poller = Poller(tick: max(.milliseconds(5), min(precision, .milliseconds(250)))) else { return nil }
        self.poller = poller
    }

    deinit { poller.stop() }

    /// A place to wait at, for one connection.
    func watch() -> Watch {
        let id = poller.nextID.wrappingAdd(1, ordering: .relaxed).newValue
        let watch = Watch(id: id, source: self)
        poller.watches.withLock { $0[id] = WeakWatch(watch: watch) }
        return watch
    }

    func forget(_ id: UInt64) {
        poller.watches.withLock { _ = $0.removeValue(forKey: id) }
    }

    /// Reports the next readiness of `socket` once. - Returns: whether it will.
    ///
    /// Never inlined, so that `errno` is not read where another thread had it; see
    /// ``ThreadExecutor/onCallingThread(_:)``.
    @inline(never)
    func arm(_ socket: Int32, id: UInt64) -> Bool {
        guard socket >= 0 else { return false }
        let events = EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLONESHOT.rawValue
        if postern_epoll(poller.epoll, EPOLL_CTL_MOD, socket, events, id) == 0 { return true }
        // New, or closed meanwhile by libpq, which took it out.
        return errno == ENOENT && postern_epoll(poller.epoll, EPOLL_CTL_ADD, socket, events, id) == 0
    }
}

private struct WeakWatch: Sendable {
    weak let watch: Watch?
}

/// What the thread holds on to: it ends, and frees this, after ``stop()``.
private final class Poller: Sendable {
    let epoll: Int32
    let watches = Mutex<[UInt64: WeakWatch]>([:])
    /// Zero is the alarm's.
    let nextID = Atomic<UInt64>(0)
    private let alarm: Int32
    private let tick: Duration
    private let isStopped = Atomic<Bool>(false)

    init?(tick: Duration) {
        self.tick = tick
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        alarm = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard epoll >= 0, alarm >= 0, postern_epoll(epoll, EPOLL_CTL_ADD, alarm, EPOLLIN.rawValue, 0) == 0 else {
            return nil
        }
        guard DetachedThread.start({ self.run() }) else { return nil }
    }

    deinit {
        if epoll >= 0 { close(epoll) }
        if alarm >= 0 { close(alarm) }
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        eventfd_write(alarm, 1)
    }

    private func run() {
        var events = Array(repeating: epoll_event(), count: 64)
        var nextLook = ContinuousClock.now + tick
        while !isStopped.load(ordering: .acquiring) {
            let count = epoll_wait(epoll, &events, Int32(events.count), Int32(tick.milliseconds))
            for event in events.prefix(Int(max(0, count))) {
                watches.withLock { $0[event.data.u64]?.watch }?.isReadable()
            }
            let now = ContinuousClock.now
            guard now >= nextLook else { continue }
            nextLook = now + tick
            for watch in watches.withLock({ $0.values.compactMap(\.watch) }) { watch.expire(at: now) }
        }
    }
}
