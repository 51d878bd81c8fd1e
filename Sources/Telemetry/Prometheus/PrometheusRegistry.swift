public import CoreMetrics
import Synchronization

/// The backend of swift-metrics that `/metrics` shows: keeps the series in memory and writes them in Prometheus' text
/// format (version 0.0.4).
///
/// The code that records a series chooses its labels from a bounded set. Should it not, a family still keeps at most
/// ``maximumSeries`` series, and `postern_metrics_series_refused_total` counts what found no room.
public final class PrometheusRegistry: MetricsFactory {
    private enum Cell: Sendable {
        case counter(CounterCell)
        case gauge(GaugeCell)
        case histogram(HistogramCell)
    }

    private struct Entry: Sendable {
        let family: MetricFamily
        /// By the labels as the text has them.
        var series: [String: Cell] = [:]
    }

    private struct State: Sendable {
        /// In the order of their declaration.
        var entries: [Entry] = []
        var places: [String: Int] = [:]
        var sources: [@Sendable () -> [MetricSample]] = []
    }

    static let maximumSeries = 2000
    private static let refused = MetricFamily.counter(
        "postern_metrics_series_refused_total", "Series that were not kept, because their metric has too many.")

    private let state = Mutex(State())
    private let refusals = CounterCell()

    /// A registry that describes `families` even while they have no series.
    public init(_ families: [MetricFamily]) {
        state.withLock { state in
            for family in families { _ = Self.place(of: family, &state) }
            let own = Self.place(of: Self.refused, &state)
            state.entries[own].series[""] = .counter(refusals)
        }
    }

    /// Asks `source` whenever the text is asked for.
    public func collect(_ source: @escaping @Sendable () -> [MetricSample]) {
        state.withLock { $0.sources.append(source) }
    }

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        let cell = cell(label, dimensions, .counter) { _ in .counter(CounterCell()) }
        if case .counter(let counter) = cell { return counter }
        return CounterCell()
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        gauge(label, dimensions)
    }

    public func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        aggregate ? histogram(label, dimensions) : gauge(label, dimensions)
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    /// Series stay until the process ends: a counter that vanished would look like a restart.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}

    private func gauge(_ label: String, _ dimensions: [(String, String)]) -> GaugeCell {
        if case .gauge(let gauge) = cell(label, dimensions, .gauge, { _ in .gauge(GaugeCell()) }) { return gauge }
        return GaugeCell()
    }

    private func histogram(_ label: String, _ dimensions: [(String, String)]) -> HistogramCell {
        let cell = cell(label, dimensions, .histogram) { .histogram(HistogramCell(bounds: $0.bounds)) }
        if case .histogram(let histogram) = cell { return histogram }
        return HistogramCell(bounds: [])
    }

    /// The cell of a series. - Returns: `nil` when the family is full, or of another kind.
    private func cell(
        _ name: String, _ dimensions: [(String, String)], _ kind: MetricFamily.Kind, _ make: (MetricFamily) -> Cell
    ) -> Cell? {
        let labels = Exposition.labels(dimensions)
        return state.withLock { state in
            let place = Self.place(of: .undeclared(name, kind), &state)
            guard state.entries[place].family.kind == kind else { return nil }
            if let cell = state.entries[place].series[labels] { return cell }
            guard state.entries[place].series.count < Self.maximumSeries else {
                refusals.increment(by: 1)
                return nil
            }
            let cell = make(state.entries[place].family)
            state.entries[place].series[labels] = cell
            return cell
        }
    }

    private static func place(of family: MetricFamily, _ state: inout State) -> Int {
        if let place = state.places[family.name] { return place }
        state.places[family.name] = state.entries.count
        state.entries.append(Entry(family: family))
        return state.entries.count - 1
    }

    /// The exposition text.
    public func text() -> String {
        let (entries, places, sources) = state.withLock { ($0.entries, $0.places, $0.sources) }
        var samples = [[MetricSample]](repeating: [], count: entries.count)
        for sample in sources.flatMap({ $0() }) {
            if let place = places[sample.name] { samples[place].append(sample) }
        }
        var exposition = Exposition()
        for (entry, samples) in zip(entries, samples) {
            exposition.begin(entry.family)
            for (labels, cell) in entry.series.sorted(by: { $0.key < $1.key }) {
                switch cell {
                case .counter(let counter): exposition.add(entry.family.name, labels, "\(counter.current)")
                case .gauge(let gauge): exposition.add(entry.family.name, labels, gauge.current)
                case .histogram(let histogram): exposition.add(entry.family.name, labels, histogram)
                }
            }
            for sample in samples { exposition.add(sample.name, Exposition.labels(sample.labels), sample.value) }
        }
        return exposition.text
    }
}

/// Prometheus' text format.
private struct Exposition {
    private(set) var text = ""

    mutating func begin(_ family: MetricFamily) {
        text += "# HELP \(family.name) \(family.help)\n# TYPE \(family.name) \(family.kind.rawValue)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ value: String) {
        text += labels.isEmpty ? "\(name) \(value)\n" : "\(name){\(labels)} \(value)\n"
    }

    mutating func add(_ name: String, _ labels: String, _ value: Double) {
        let isWhole = abs(value) < 1e15 && value == value.rounded()
        add(name, labels, isWhole ? "\(Int64(value))" : "\(value)")
    }

    mutating func add(_ name: String, _ labels: String, _ histogram: HistogramCell) {
        let values = histogram.current
        let prefix = labels.isEmpty ? "" : labels + ","
        var cumulative: UInt64 = 0
        for (bound, bucket) in zip(histogram.bounds, values.buckets) {
            cumulative += bucket
            add(name + "_bucket", prefix + "le=\"\(bound)\"", "\(cumulative)")
        }
        add(name + "_bucket", prefix + "le=\"+Inf\"", "\(values.count)")
        add(name + "_sum", labels, "\(values.sum)")
        add(name + "_count", labels, "\(values.count)")
    }

    /// `name="value",…`, escaped as the format wants it.
    static func labels(_ dimensions: [(String, String)]) -> String {
        dimensions.map { name, value in
            let escaped =
                value.contains { $0 == "\\" || $0 == "\"" || $0 == "\n" }
                ? value.reduce(into: "") { $0 += $1 == "\n" ? "\\n" : $1 == "\\" || $1 == "\"" ? "\\\($1)" : "\($1)" }
                : value
            return "\(name)=\"\(escaped)\""
        }.joined(separator: ",")
    }
}
