import Grants
import Logging
import Persistence
import ServiceLifecycle

/// Moves secrets of version 0 under data keys, and counts for the metrics what depends on each line of the key file.
struct KeyLineService: Service {
    /// Of each cluster.
    let clusters: [(resealing: KeyResealing, lines: KeyLineStore)]
    let keyring: Keyring
    let metrics: Metrics
    let logger: Logger

    private static let interval = Duration.seconds(10)
    /// In rounds of `interval`. With one line nothing can be removed, so that it need not be known so soon.
    private var roundsBetweenCounts: Int { keyring.keys.count > 1 ? 6 : 360 }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            var round = 0
            var waiting = KeyResealing.Moved()
            while !Task.isCancelled {
                do {
                    var moved = KeyResealing.Moved()
                    for cluster in clusters { moved.add(try await cluster.resealing.moveVersion0Secrets()) }
                    report(moved, before: waiting)
                    waiting = moved
                    if moved.count > 0 || round % roundsBetweenCounts == 0 {
                        var use = KeyLineUse()
                        for cluster in clusters { use.add(try await cluster.lines.use()) }
                        metrics.setKeyLines(use, of: keyring)
                    }
                    round += 1
                } catch {
                    logger.debug("lines of the key file are not counted", metadata: ["error": "\(error)"])
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }

    /// Once each, not every round.
    private func report(_ moved: KeyResealing.Moved, before: KeyResealing.Moved) {
        for (purpose, count) in moved.moved.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            logger.notice(
                "put under a data key", metadata: ["kind": "\(purpose.rawValue)", "count": "\(count)"])
        }
        if moved.unopened > 0, moved.unopened != before.unopened {
            logger.warning(
                "secrets stand on a line that is not in the key file", metadata: ["count": "\(moved.unopened)"])
        }
        if moved.version0Connections > 0, before.version0Connections == 0 {
            logger.notice(
                "secrets of version 0 wait until its last process has stopped",
                metadata: ["connections": "\(moved.version0Connections)"])
        }
    }
}
