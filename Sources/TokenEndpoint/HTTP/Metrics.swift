import Grants
import Persistence
import Synchronization

/// Counters and durations in the Prometheus text format. Labels are routes, grants and outcomes: nothing a caller
/// chooses.
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

    private struct Delivered: Hashable {
        let channel: String
        let outcome: String
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
        var messages: [Delivered: UInt64] = [:]
        var events: [String: UInt64] = [:]
        var wrongCodes: UInt64 = 0
        var codeLockouts: UInt64 = 0
        var codeBrakes: UInt64 = 0
        var durations: [String: Histogram] = [:]
        var keyLines: [(labels: String, value: UInt64)] = []
        var gauges: [@Sendable () -> [Gauge]] = []
    }

    /// A value as of now.
    struct Gauge: Sendable {
        let name: String
        /// Label name and value, quoted as the format wants it; empty for none.
        var labels = ""
        let value: Double
    }

    private let state = Mutex(State())
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

    /// Counts how an attempt at a message ended: `sent`, `retried`, `dead` or `denied`.
    func countMessage(channel: String, outcome: String) {
        state.withLock { $0.messages[Delivered(channel: channel, outcome: outcome), default: 0] += 1 }
    }

    /// Counts how an attempt at an event for a webhook ended: `delivered`, `failed` or `refused`.
    func countEvent(outcome: String) {
        state.withLock { $0.events[outcome, default: 0] += 1 }
    }

    /// Asks `source` for gauges whenever the text is asked for; all of one name come one after another.
    func watch(_ source: @escaping @Sendable () -> [Gauge]) {
        state.withLock { $0.gauges.append(source) }
    }

    /// Shows how the pool of `database` is used.
    func watch(_ database: Database) {
        watch {
            let pools = database.parts.map { part in
                (counts: part.database.poolCounts, label: database.parts.count > 1 ? "cluster=\"\(part.name)\"" : "")
            }
            return pools.flatMap { pool in
                [("free", pool.counts.free), ("lent", pool.counts.lent), ("connecting", pool.counts.connecting)].map {
                    Gauge(
                        name: "postern_pool_connections",
                        labels: "state=\"\($0)\"" + (pool.label.isEmpty ? "" : ",\(pool.label)"), value: Double($1))
                }
            }
                + pools.map {
                    Gauge(name: "postern_pool_waiting", labels: $0.label, value: Double($0.counts.waiting))
                }
        }
    }

    /// Shows which configuration this node serves: equal values on all nodes mean that a change has arrived everywhere.
    func watch(_ realms: RealmDirectory) {
        watch {
            guard let known = realms.knownVersions else { return [] }
            return [
                Gauge(name: "postern_configuration_realms", value: Double(known.realms)),
                Gauge(name: "postern_configuration_version", value: Double(known.version)),
            ]
        }
    }

    /// Counts the outcomes of tried codes.
    func count(_ event: OTPFactor.Event) {
        state.withLock { state in
            switch event {
            case .wrong(let codes): state.wrongCodes += UInt64(codes)
            case .lockout: state.codeLockouts += 1
            case .brake: state.codeBrakes += 1
            }
        }
    }

    /// What depends on each line of the key file; zero is reported too, so that an alert can wait for it.
    func setKeyLines(_ use: KeyLineUse, of keyring: Keyring) {
        let lines = Set(keyring.keys.map(\.name)).union(use.counts.keys)
        func labels(_ line: String, _ kind: KeyLineUse.Kind) -> String {
            "line=\"\(line)\",kind=\"\(kind.rawValue)\""
        }
        var series = lines.flatMap { line in
            KeyLineUse.Kind.allCases.map { (labels(line, $0), UInt64(use.counts[line]?[$0] ?? 0)) }
        }
        series += use.unknown.map { (labels("unknown", $0), UInt64($1)) }
        state.withLock { [series] in $0.keyLines = series }
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
            "postern_messages_total",
            state.messages.map { ("channel=\"\($0.channel)\",outcome=\"\($0.outcome)\"", $1) })
        lines += Self.counter(
            "postern_webhook_events_total", state.events.map { ("outcome=\"\($0)\"", $1) })
        lines += Self.counter(
            "postern_rate_limit_exceeded_total",
            state.excesses.map { exceeded, count in
                let labels = "policy=\"\(exceeded.policy.rawValue)\",dimension=\"\(exceeded.dimension.rawValue)\""
                return (labels + ",mode=\"\(exceeded.enforced ? "enforce" : "log-only")\"", count)
            })
        for (name, value) in [
            ("postern_wrong_codes_total", state.wrongCodes), ("postern_code_lockouts_total", state.codeLockouts),
            ("postern_code_brake_refusals_total", state.codeBrakes),
        ] {
            lines += ["# TYPE \(name) counter", "\(name) \(value)"]
        }
        lines += Self.family("postern_key_line_in_use", "gauge", state.keyLines)
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
        lines += Self.lines(of: state.gauges.flatMap { $0() })
        return lines.joined(separator: "\n") + "\n"
    }

    private static func lines(of gauges: [Gauge]) -> [String] {
        var lines: [String] = []
        var last: String?
        for gauge in gauges {
            if gauge.name != last { lines.append("# TYPE \(gauge.name) gauge") }
            last = gauge.name
            let isWhole = abs(gauge.value) < 1e15 && gauge.value == gauge.value.rounded()
            let value = isWhole ? "\(Int64(gauge.value))" : "\(gauge.value)"
            lines.append(gauge.labels.isEmpty ? "\(gauge.name) \(value)" : "\(gauge.name){\(gauge.labels)} \(value)")
        }
        return lines
    }

    private static func counter(_ name: String, _ series: [(labels: String, value: UInt64)]) -> [String] {
        family(name, "counter", series)
    }

    private static func family(
        _ name: String, _ type: String, _ series: [(labels: String, value: UInt64)]
    ) -> [String] {
        ["# TYPE \(name) \(type)"]
            + series.sorted { $0.labels < $1.labels }.map { "\(name){\($0.labels)} \($0.value)" }
    }
}
