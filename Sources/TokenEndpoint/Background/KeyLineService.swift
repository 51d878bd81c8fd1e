import Logging
import Persistence
import ServiceLifecycle

/// Counts for the metrics what depends on each line of the key file.
struct KeyLineService: Service {
    /// Of each cluster.
    let stores: [KeyLineStore]
    let keyring: Keyring
    let metrics: Metrics
    let logger: Logger

    /// With one line nothing can be removed, so that it need not be known so soon.
    private var interval: Duration { keyring.keys.count > 1 ? .seconds(60) : .seconds(3600) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    var use = KeyLineUse()
                    for store in stores { use.add(try await store.use()) }
                    metrics.setKeyLines(use, of: keyring)
                } catch {
                    logger.debug("lines of the key file are not counted", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: interval)
            }
        }
    }
}
