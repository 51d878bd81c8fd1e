import Grants
import ServiceLifecycle

/// Sends logout tokens; every node does, each its share.
struct LogoutTokenService: Service {
    let tokens: LogoutTokens

    func run() async throws {
        await withGracefulShutdownHandler {
            await tokens.run()
        } onGracefulShutdown: {
            tokens.stop()
        }
    }
}
