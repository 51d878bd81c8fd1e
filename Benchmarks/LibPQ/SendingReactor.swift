import CEpoll
import Glibc
import Synchronization

/// One thread sends and reads for all: callers queue, connections belong to that thread alone and need neither lock nor
/// lease.
final class SendingReactor: Strategy, Readable, @unchecked Sendable {
    private struct Job {
        let request: Request
        let continuation: CheckedContinuation<Answer, Never>
    }

    private final class Lane: Readable, @unchecked Sendable {
        let session: Session
        let descriptor: Int32
        unowned let owner: SendingReactor
        var job: Job?

        init(_ conninfo: String, owner: SendingReactor) {
            session = Session(conninfo)
            descriptor = session.descriptor
            self.owner = owner
        }

        func ready() {
            guard let answer = session.receive(), let done = job else { return }
            job = nil
            owner.idle.append(self)
            owner.dispatch()
            done.continuation.resume(returning: answer)
        }
    }

    private let incoming = Mutex<[Job]>([])
    let descriptor: Int32 = eventfd(0, Int32(EFD_NONBLOCK))
    private var reactor: Reactor?
    private var idle: [Lane] = []
    private var pending: [Job] = []
    private var head = 0

    init(_ conninfo: String, connections: Int) {
        let lanes = (0..<connections).map { _ in Lane(conninfo, owner: self) }
        idle = lanes
        reactor = Reactor([self] + lanes)
    }

    func run(_ request: Request, caller: Int) async -> Bool {
        await withCheckedContinuation { continuation in
            let isFirst = incoming.withLock { incoming in
                incoming.append(Job(request: request, continuation: continuation))
                return incoming.count == 1
            }
            if isFirst { eventfd_write(descriptor, 1) }
        }.isExpected(request)
    }

    func close() async {
        reactor?.stop()
        idle = []
        Glibc.close(descriptor)
    }

    func ready() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
        let jobs = incoming.withLock { incoming in
            defer { incoming.removeAll(keepingCapacity: true) }
            return incoming
        }
        pending.append(contentsOf: jobs)
        dispatch()
    }

    private func dispatch() {
        while head < pending.count, let lane = idle.popLast() {
            lane.job = pending[head]
            lane.session.send(pending[head].request)
            head += 1
        }
        if head == pending.count {
            pending.removeAll(keepingCapacity: true)
            head = 0
        }
    }
}
