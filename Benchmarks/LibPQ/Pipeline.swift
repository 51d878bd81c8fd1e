import CLibPQ
import Synchronization

/// Requests of several callers in flight on one connection, each an implicit transaction ended by a Sync of its own.
struct Pipeline: Strategy {
    private let connections: [PipelinedConnection]
    private let reactor: Reactor

    init(_ conninfo: String, connections count: Int) {
        connections = (0..<count).map { _ in PipelinedConnection(conninfo) }
        reactor = Reactor(connections)
    }

    func run(_ request: Request, caller: Int) async -> Bool {
        await connections[caller % connections.count].answer(to: request).isExpected(request)
    }

    func close() async { reactor.stop() }
}

/// The lock keeps the order of what is sent and the order of who waits the same.
final class PipelinedConnection: Readable {
    private struct Line {
        var waiting: [CheckedContinuation<Answer, Never>] = []
        var head = 0
    }

    private let session: Session
    private let line = Mutex(Line())
    let descriptor: Int32

    init(_ conninfo: String) {
        session = Session(conninfo)
        descriptor = session.descriptor
        precondition(PQenterPipelineMode(session.pointer) == 1)
    }

    func answer(to request: Request) async -> Answer {
        await withCheckedContinuation { continuation in
            line.withLock { line in
                line.waiting.append(continuation)
                session.send(request)
                guard PQpipelineSync(session.pointer) == 1, PQflush(session.pointer) == 0 else {
                    fatalError("not sent")
                }
            }
        }
    }

    func ready() {
        let done = line.withLock { line in
            var done: [(CheckedContinuation<Answer, Never>, Answer)] = []
            guard PQconsumeInput(session.pointer) == 1 else { fatalError("lost") }
            while line.head < line.waiting.count, PQisBusy(session.pointer) == 0 {
                guard let result = PQgetResult(session.pointer) else { continue }  // between two commands
                if PQresultStatus(result) == PGRES_PIPELINE_SYNC {
                    PQclear(result)
                    done.append((line.waiting[line.head], Answer(pointer: session.kept)))
                    session.kept = nil
                    line.head += 1
                } else {
                    PQclear(session.kept)
                    session.kept = result
                }
            }
            if line.head == line.waiting.count {
                line.waiting.removeAll(keepingCapacity: true)
                line.head = 0
            }
            return done
        }
        for (continuation, answer) in done { continuation.resume(returning: answer) }
    }
}
