import Grants
import Logging
import ServiceLifecycle

/// Publishes the signing keys that administrators ask for with `admin.rotate_signing_key`, within five seconds.
struct SigningKeyRotation: Service {
    let keys: SigningKeys
    let logger: Logger

    private static let interval = Duration.seconds(2)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    let published = try await keys.carryOutRequests()
                    if published > 0 { logger.notice("signing keys published", metadata: ["count": "\(published)"]) }
                } catch {
                    logger.debug("signing keys wait", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}
