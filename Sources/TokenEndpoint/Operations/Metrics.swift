import Grants
import Synchronization

/// Counters and durations in the Prometheus text format. Labels are routes, grants and outcomes: nothing a caller chooses.
public final class Metrics: Sendable {
    private struct Answered: Hashable {
        let route: String
        let status: Int
    }

    private struct Redeemed: Hashable {
        let grantType: String
        let outcome: String
    }

    private struct Exceeded: Hashable {
        let policy: RateLimit.Policy
        let dimension: RateLimit.Dimension
        let enforced: Bool
    }

    private struct Histogram {
        var buckets = [UInt64](repeating: 0, count: Metrics.bounds.count + 1)
        var sum = 0.0
        var count: UInt64 = 0

        mutating func add(_ seconds: Double, to bucket: Int) {
            buckets[bucket] += 1
            sum += seconds
            count += 1
        }
    }

    private struct State {
        var requests: [Answered: UInt64] = [:]
        var grants: [Redeemed: UInt64] = [:]
        var excesses: [Exceeded: UInt64] = [:]
        var durations: [String: Histogram] = [:]
    }

    private let state = Mutex(State())
    /// What waits in the database.
    let queues = QueueGauges()
    /// Seconds.
    private static let bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

    /// No samples yet.
    public init() {}

    /// Counts an answered request.
    func count(route: String, status: Int, seconds: Double) {
        state.withLock { state in
            state.requests[Answered(route: route, status: status), default: 0] += 1
            let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
            state.durations[route, default: Histogram()].add(seconds, to: bucket)
        }
    }

    /// Counts a token request by grant and outcome.
    func countGrant(_ grantType: String, outcome: String) {
        state.withLock {
            $0.grants[Redeemed(grantType: grantType, outcome: outcome), default: 0] += 1
        }
    }

    /// Counts a request that found a limit used up.
    func countExcess(of limit: TokenError.ExceededLimit, enforced: Bool) {
        let exceeded = Exceeded(policy: limit.policy, dimension: limit.dimension, enforced: enforced)
        state.withLock { $0.excesses[exceeded, default: 0] += 1 }
    }

    /// The exposition text.
    func text() -> String {
        let state = state.withLock { $0 }
        var lines: [String] = []
        lines += Self.counter(
            "postern_http_requests_total", state.requests.map { ("route=\"\($0.route)\",status=\"\($0.status)\"", $1) })
        lines += Self.counter(
            "postern_grants_total", state.grants.map { ("grant=\"\($0.grantType)\",outcome=\"\($0.outcome)\"", $1) })
        lines += Self.counter(
            "postern_rate_limit_exceeded_total",
            state.excesses.map { exceeded, count in
                let labels = "policy=\"\(exceeded.policy.rawValue)\",dimension=\"\(exceeded.dimension.rawValue)\""
                return (labels + ",mode=\"\(exceeded.enforced ? "enforce" : "log-only")\"", count)
            })
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
        lines += queues.lines()
        return lines.joined(separator: "\n") + "\n"
    }

    private static func counter(_ name: String, _ series: [(labels: String, value: UInt64)]) -> [String] {
        ["# TYPE \(name) counter"]
            + series.sorted { $0.labels < $1.labels }.map { "\(name){\($0.labels)} \($0.value)" }
    }
}
