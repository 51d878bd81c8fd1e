import Synchronization

/// Counters and durations in the Prometheus text format. Labels are routes, grants and outcomes: nothing a caller chooses.
public final class Metrics: Sendable {
    private struct Series: Hashable {
        let name: StaticName
        let labels: String
    }

    private enum StaticName: String {
        case requests = "postern_http_requests_total"
        case grants = "postern_grants_total"
    }

    private struct Histogram {
        var buckets = [UInt64](repeating: 0, count: Metrics.bounds.count + 1)
        var sum = 0.0
        var count: UInt64 = 0
    }

    private struct State {
        var counters: [Series: UInt64] = [:]
        var durations: [String: Histogram] = [:]
    }

    private let state = Mutex(State())
    /// Seconds.
    private static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

    /// No samples yet.
    public init() {}

    /// Counts an answered request.
    func count(route: String, status: Int, seconds: Double) {
        state.withLock { state in
            state.counters[Series(name: .requests, labels: "route=\"\(route)\",status=\"\(status)\""), default: 0] += 1
            var histogram = state.durations[route] ?? Histogram()
            let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
            histogram.buckets[bucket] += 1
            histogram.sum += seconds
            histogram.count += 1
            state.durations[route] = histogram
        }
    }

    /// Counts a token request by grant and outcome.
    func countGrant(_ grantType: String, outcome: String) {
        state.withLock {
            $0.counters[Series(name: .grants, labels: "grant=\"\(grantType)\",outcome=\"\(outcome)\""), default: 0] += 1
        }
    }

    /// The exposition text.
    func text() -> String {
        let state = state.withLock { $0 }
        var lines: [String] = []
        for name in [StaticName.requests, .grants] {
            lines.append("# TYPE \(name.rawValue) counter")
            for (series, value) in state.counters.filter({ $0.key.name == name }).sorted(by: {
                $0.key.labels < $1.key.labels
            }) {
                lines.append("\(name.rawValue){\(series.labels)} \(value)")
            }
        }
        let durations = "postern_http_request_duration_seconds"
        lines.append("# TYPE \(durations) histogram")
        for (route, histogram) in state.durations.sorted(by: { $0.key < $1.key }) {
            var cumulative: UInt64 = 0
            for (index, bound) in Self.bounds.enumerated() {
                cumulative += histogram.buckets[index]
                lines.append("\(durations)_bucket{route=\"\(route)\",le=\"\(bound)\"} \(cumulative)")
            }
            lines.append("\(durations)_bucket{route=\"\(route)\",le=\"+Inf\"} \(histogram.count)")
            lines.append("\(durations)_sum{route=\"\(route)\"} \(histogram.sum)")
            lines.append("\(durations)_count{route=\"\(route)\"} \(histogram.count)")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
