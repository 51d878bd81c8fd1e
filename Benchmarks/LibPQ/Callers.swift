import NIOCore
import NIOPosix
import Synchronization

/// As the server's: a task's jobs run on one event loop.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// What one caller has done so far.
final class Tally: Sendable {
    let requests = Atomic<Int>(0)
    let failures = Atomic<Int>(0)
}

/// Callers that ask one request after another.
struct Callers {
    private let tallies: [Tally]
    private let tasks: [Task<[Duration], Never>]
    private let isDone: Flag

    final class Flag: Sendable { let value = Atomic<Bool>(false) }

    init(
        _ count: Int, on loops: [LoopExecutor], _ strategy: any Strategy, _ workload: Workload, run: Int, sessions: Int
    ) {
        let tallies = (0..<count).map { _ in Tally() }
        let isDone = Flag()
        self.tallies = tallies
        self.isDone = isDone
        tasks = tallies.enumerated().map { caller, tally in
            Task(executorPreference: loops[caller % loops.count]) {
                var latencies: [Duration] = []
                latencies.reserveCapacity(1 << 16)
                var n = 0
                while !isDone.value.load(ordering: .relaxed) {
                    let request = workload.request(n, caller: caller, run: run, sessions: sessions)
                    let start = ContinuousClock.now
                    let isFine = await strategy.run(request, caller: caller)
                    latencies.append(.now - start)
                    n += 1
                    tally.requests.wrappingAdd(1, ordering: .relaxed)
                    if !isFine { tally.failures.wrappingAdd(1, ordering: .relaxed) }
                }
                return latencies
            }
        }
    }

    var requests: Int { tallies.reduce(0) { $0 + $1.requests.load(ordering: .relaxed) } }
    var failures: Int { tallies.reduce(0) { $0 + $1.failures.load(ordering: .relaxed) } }

    /// Lets every caller finish. - Returns: how long each request took, shortest first.
    func stop() async -> [Duration] {
        isDone.value.store(true, ordering: .relaxed)
        var all: [Duration] = []
        for task in tasks { all += await task.value }
        return all.sorted()
    }
}
