import Grants
import ServiceLifecycle

/// Sends events to webhooks; every node does, each its share.
struct EventService: Service {
    let sender: EventSender

    func run() async throws {
        await withGracefulShutdownHandler {
            await sender.run()
        } onGracefulShutdown: {
            sender.stop()
        }
    }
}
