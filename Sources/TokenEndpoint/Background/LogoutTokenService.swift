import Grants
import Logging
import ServiceLifecycle

/// Sends logout tokens; every node does, each its share.
struct LogoutTokenService: Service {
    let tokens: LogoutTokens
    let logger: Logger

    private static let interval = Duration.seconds(1)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    while try await tokens.send().mayBeMore, !Task.isCancelled {}
                } catch {
                    logger.debug("logout tokens wait: the database is not available", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}
