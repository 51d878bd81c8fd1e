import Grants
import Synchronization

/// Counters of connections, in the Prometheus text format.
final class TransportMetrics: Sendable {
    let openConnections = Atomic<Int>(0)
    let droppedConnections = Atomic<UInt64>(0)
    let acceptPauses = Atomic<UInt64>(0)
    /// Requests with `X-Forwarded-For` from peers that are not trusted proxies.
    let untrustedForwarded = Atomic<UInt64>(0)
    /// Requests to `get_identity` without `API_KEY_ID`.
    private let missingAPIKeys = Atomic<UInt64>(0)
    private let refusedPerProcess = Atomic<UInt64>(0)
    private let refusedPerSource = Atomic<UInt64>(0)

    func countMissingAPIKey() {
        missingAPIKeys.add(1, ordering: .relaxed)
    }

    func countRefused(_ refusal: OpenConnections.Refusal) {
        switch refusal {
        case .process: refusedPerProcess.add(1, ordering: .relaxed)
        case .source: refusedPerSource.add(1, ordering: .relaxed)
        }
    }

    /// The exposition text.
    func text() -> String {
        """
        # TYPE postern_connections gauge
        postern_connections \(openConnections.load(ordering: .relaxed))
        # TYPE postern_connections_refused_total counter
        postern_connections_refused_total{limit="process"} \(refusedPerProcess.load(ordering: .relaxed))
        postern_connections_refused_total{limit="source"} \(refusedPerSource.load(ordering: .relaxed))
        # TYPE postern_connections_dropped_total counter
        postern_connections_dropped_total \(droppedConnections.load(ordering: .relaxed))
        # TYPE postern_accept_pauses_total counter
        postern_accept_pauses_total \(acceptPauses.load(ordering: .relaxed))
        # TYPE postern_untrusted_forwarded_total counter
        postern_untrusted_forwarded_total \(untrustedForwarded.load(ordering: .relaxed))
        # TYPE postern_missing_api_key_total counter
        postern_missing_api_key_total \(missingAPIKeys.load(ordering: .relaxed))

        """
    }
}
