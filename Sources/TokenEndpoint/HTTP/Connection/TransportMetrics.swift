import CoreMetrics

/// Counters of connections.
final class TransportMetrics: Sendable {
    private let openConnections: Meter
    private let droppedConnections: Counter
    private let acceptPauses: Counter
    private let untrustedForwarded: Counter
    private let unknownHosts: Counter
    private let missingAPIKeys: Counter
    private let refusedPerProcess: Counter
    private let refusedPerSource: Counter

    /// - Parameter factory: where the values are kept.
    init(_ factory: any MetricsFactory) {
        func counter(_ name: String, _ labels: [(String, String)] = []) -> Counter {
            Counter(label: name, dimensions: labels, factory: factory)
        }
        openConnections = Meter(label: "postern_connections", factory: factory)
        droppedConnections = counter("postern_connections_dropped_total")
        acceptPauses = counter("postern_accept_pauses_total")
        untrustedForwarded = counter("postern_untrusted_forwarded_total")
        unknownHosts = counter("postern_unknown_host_total")
        missingAPIKeys = counter("postern_missing_api_key_total")
        refusedPerProcess = counter("postern_connections_refused_total", [("limit", "process")])
        refusedPerSource = counter("postern_connections_refused_total", [("limit", "source")])
    }

    func countOpened() { openConnections.increment() }
    func countClosed() { openConnections.decrement() }
    func countDropped() { droppedConnections.increment() }
    func countAcceptPause() { acceptPauses.increment() }

    /// Counts a request with `X-Forwarded-For` from a peer that is not a trusted proxy.
    func countUntrustedForwarded() { untrustedForwarded.increment() }

    /// Counts a request for a host that no realm has.
    func countUnknownHost() { unknownHosts.increment() }

    /// Counts a request to `get_identity` without `API_KEY_ID`.
    func countMissingAPIKey() { missingAPIKeys.increment() }

    func countRefused(_ refusal: OpenConnections.Refusal) {
        switch refusal {
        case .process: refusedPerProcess.increment()
        case .source: refusedPerSource.increment()
        }
    }
}
