import Grants
import ServiceLifecycle

/// Runs the worker that resolves requests for approval.
struct ApprovalService: Service {
    let worker: ApprovalWorker

    func run() async throws {
        await cancelWhenGracefulShutdown { await worker.run() }
    }
}
