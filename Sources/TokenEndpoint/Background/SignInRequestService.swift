import Grants
import ServiceLifecycle

/// Runs the worker that decides requests for codes and links.
struct SignInRequestService: Service {
    let worker: SignInRequestWorker

    func run() async throws {
        await cancelWhenGracefulShutdown { await worker.run() }
    }
}
