import CoreMetrics
import Foundation
import Grants
import Persistence
import Synchronization
public import Telemetry

/// What this process counts and measures, through swift-metrics. Labels are routes, grants and outcomes: nothing a
/// caller chooses.
///
/// A series is made at its first use and kept here: making one costs a lock and a text, recording in one that is known
/// costs an atomic addition.
public final class Metrics: Sendable {
    // Foundation has one, too.
    private typealias Timer = CoreMetrics.Timer

    /// Keeps and shows the values.
    public let registry: PrometheusRegistry

    private struct Answers: Sendable {
        let duration: Timer
        var counts: [Int: Counter] = [:]
    }

    private struct Redeemed: Hashable {
        let grantType: String
        let outcome: String
    }

    private struct State: Sendable {
        var routes: [String: Answers] = [:]
        var grants: [Redeemed: (count: Counter, duration: Timer)] = [:]
        var keyLines: [MetricSample] = []
    }

    private let state = Mutex(State())
    private let refreshes: [RefreshGrant.Event: Counter]
    private let wrongCodes: Counter
    private let codeLockouts: Counter
    private let codeBrakes: Counter
    private let repetitions: Counter
    private let sweptRows: Counter
    private let sweepDuration: Timer
    private let sweepSuccess: Meter

    /// No samples yet.
    public init() {
        let registry = PrometheusRegistry(Self.families)
        self.registry = registry
        refreshes = Dictionary(
            uniqueKeysWithValues: RefreshGrant.Event.allCases.map { event in
                let labels = [("outcome", event.rawValue)]
                return (event, Counter(label: "postern_refreshes_total", dimensions: labels, factory: registry))
            })
        wrongCodes = Counter(label: "postern_wrong_codes_total", factory: registry)
        codeLockouts = Counter(label: "postern_code_lockouts_total", factory: registry)
        codeBrakes = Counter(label: "postern_code_brake_refusals_total", factory: registry)
        repetitions = Counter(label: "postern_repeated_sign_ins_total", factory: registry)
        sweptRows = Counter(label: "postern_sweep_rows_total", factory: registry)
        sweepDuration = Timer(label: "postern_sweep_duration_seconds", factory: registry)
        sweepSuccess = Meter(label: "postern_sweep_last_success_timestamp_seconds", factory: registry)
        sweepSuccess.set(Int(Date().timeIntervalSince1970))
        registry.collect { [weak self] in self?.state.withLock(\.keyLines) ?? [] }
    }

    /// Counts an answered request.
    func count(route: String, status: Int, duration: Duration) {
        let (counter, timer) = state.withLock { state in
            if let answers = state.routes[route], let counter = answers.counts[status] {
                return (counter, answers.duration)
            }
            let counter = Counter(
                label: "postern_http_requests_total", dimensions: [("route", route), ("status", "\(status)")],
                factory: registry)
            let made = Answers(
                duration: Timer(
                    label: "postern_http_request_duration_seconds", dimensions: [("route", route)], factory: registry))
            state.routes[route, default: made].counts[status] = counter
            return (counter, state.routes[route, default: made].duration)
        }
        counter.increment()
        timer.recordNanoseconds(duration.nanoseconds)
    }

    /// Counts a token request by grant and outcome.
    func countGrant(_ grantType: String, outcome: String, duration: Duration) {
        let (counter, timer) = state.withLock { state in
            let key = Redeemed(grantType: grantType, outcome: outcome)
            if let known = state.grants[key] { return known }
            let labels = [("grant", grantType), ("outcome", outcome)]
            let made = (
                count: Counter(label: "postern_grants_total", dimensions: labels, factory: registry),
                duration: Timer(label: "postern_grant_duration_seconds", dimensions: labels, factory: registry)
            )
            state.grants[key] = made
            return made
        }
        counter.increment()
        timer.recordNanoseconds(duration.nanoseconds)
    }

    /// Counts a request that found a limit used up.
    func countExcess(of limit: TokenError.ExceededLimit, enforced: Bool) {
        count(
            "postern_rate_limit_exceeded_total",
            [
                ("policy", limit.policy.rawValue), ("dimension", limit.dimension.rawValue),
                ("mode", enforced ? "enforce" : "log-only"),
            ])
    }

    /// Counts how an attempt at a message ended: `sent`, `retried`, `dead` or `denied`.
    func countMessage(channel: String, outcome: String) {
        count("postern_messages_total", [("channel", channel), ("outcome", outcome)])
    }

    /// Counts how an attempt at an event for a webhook ended: `delivered`, `failed` or `refused`.
    func countEvent(outcome: String) {
        count("postern_webhook_events_total", [("outcome", outcome)])
    }

    /// Counts what came of a refresh token that was found.
    func count(_ event: RefreshGrant.Event) { refreshes[event]?.increment() }

    /// Counts a request that was answered as the same request was before it.
    func countRepetition() { repetitions.increment() }

    /// Counts one removal of expired rows that worked.
    func countSweep(rows: Int, duration: Duration) {
        sweptRows.increment(by: rows)
        sweepDuration.recordNanoseconds(duration.nanoseconds)
        sweepSuccess.set(Int(Date().timeIntervalSince1970))
    }

    /// One more in a series; the registry finds it by its labels.
    private func count(_ name: String, _ labels: [(String, String)]) {
        Counter(label: name, dimensions: labels, factory: registry).increment()
    }

    /// Asks `source` whenever the text is asked for.
    func watch(_ source: @escaping @Sendable () -> [MetricSample]) { registry.collect(source) }

    /// Shows how the pool of `database` is used.
    func watch(_ database: Database) {
        watch {
            database.parts.flatMap { part in
                let counts = part.database.poolCounts
                let cluster = database.parts.count > 1 ? [("cluster", part.name)] : []
                let states = [("free", counts.free), ("lent", counts.lent), ("connecting", counts.connecting)]
                return states.map { state, count in
                    MetricSample("postern_pool_connections", [("state", state)] + cluster, Double(count))
                } + [MetricSample("postern_pool_waiting", cluster, Double(counts.waiting))]
            }
        }
    }

    /// Shows how far this machine's clock is from the database's.
    func watch(_ clock: DatabaseClock) {
        watch { clock.difference.map { [MetricSample("postern_clock_difference_seconds", $0)] } ?? [] }
    }

    /// Shows which configuration this node serves: equal values on all nodes mean that a change has arrived everywhere.
    func watch(_ realms: RealmDirectory) {
        watch {
            guard let known = realms.knownVersions else { return [] }
            return [
                MetricSample("postern_configuration_realms", Double(known.realms)),
                MetricSample("postern_configuration_version", Double(known.version)),
            ]
        }
    }

    /// Counts the outcomes of tried codes.
    func count(_ event: OTPFactor.Event) {
        switch event {
        case .wrong(let codes): wrongCodes.increment(by: codes)
        case .lockout: codeLockouts.increment()
        case .brake: codeBrakes.increment()
        }
    }

    /// What depends on each line of the key file; zero is reported too, so that an alert can wait for it.
    func setKeyLines(_ use: KeyLineUse, of keyring: Keyring) {
        let lines = Set(keyring.keys.map(\.name)).union(use.counts.keys)
        func sample(_ line: String, _ kind: KeyLineUse.Kind, _ value: some BinaryInteger) -> MetricSample {
            MetricSample("postern_key_line_in_use", ["line": line, "kind": kind.rawValue], Double(value))
        }
        let samples = lines.sorted().flatMap { line in
            KeyLineUse.Kind.allCases.map { sample(line, $0, use.counts[line]?[$0] ?? 0) }
        }
        state.withLock { $0.keyLines = samples }
    }

    /// The exposition text.
    func text() -> String { registry.text() }
}
