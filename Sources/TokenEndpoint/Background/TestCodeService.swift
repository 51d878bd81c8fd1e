import Grants
import ServiceLifecycle

/// Runs the worker that keys the codes of test identities.
struct TestCodeService: Service {
    let worker: TestCodeWorker

    func run() async throws {
        await cancelWhenGracefulShutdown { await worker.run() }
    }
}
