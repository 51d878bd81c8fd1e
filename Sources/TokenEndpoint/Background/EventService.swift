import Grants
import ServiceLifecycle

/// Sends events to webhooks; every node does, each its share.
struct EventService: Service {
    let sender: EventSender
    let executor: (any TaskExecutor)?

    func run() async throws {
        await withGracefulShutdownHandler {
            await withTaskExecutorPreference(executor) {
                await sender.run()
            }
        } onGracefulShutdown: {
            sender.stop()
        }
    }
}
