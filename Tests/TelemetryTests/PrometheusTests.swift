import CoreMetrics
@testable import Telemetry
import Testing

@Suite("Metrics in Prometheus' text format")
struct PrometheusTests {
    private let registry = PrometheusRegistry([
        .counter("a_total", "Of a."), .gauge("b", "Of b."), .histogram("c_seconds", "Of c.", bounds: [0.5, 1]),
    ])

    private func lines(_ prefix: String) -> [String] {
        registry.text().split(separator: "\n").map(String.init).filter { $0.hasPrefix(prefix) }
    }

    @Test func `a family is described even while it has no series`() {
        #expect(registry.text().hasPrefix("# HELP a_total Of a.\n# TYPE a_total counter\n# HELP b Of b.\n"))
    }

    @Test func `equal labels are one series`() {
        let labels = [("route", "/x"), ("status", "200")]
        Counter(label: "a_total", dimensions: labels, factory: registry).increment(by: 2)
        Counter(label: "a_total", dimensions: labels, factory: registry).increment()
        Counter(label: "a_total", dimensions: [("route", "/y")], factory: registry).increment()
        #expect(lines("a_total") == [#"a_total{route="/x",status="200"} 3"#, #"a_total{route="/y"} 1"#])
    }

    @Test func `buckets are cumulative, and a bound belongs to its bucket`() {
        let timer = Timer(label: "c_seconds", factory: registry)
        for milliseconds in [250, 500, 501, 1500] { timer.recordMilliseconds(milliseconds) }
        #expect(
            lines("c_seconds") == [
                #"c_seconds_bucket{le="0.5"} 2"#, #"c_seconds_bucket{le="1.0"} 3"#, #"c_seconds_bucket{le="+Inf"} 4"#,
                "c_seconds_sum 2.751", "c_seconds_count 4",
            ])
    }

    @Test func `a gauge goes up and down, and a sample is read when the text is asked for`() {
        let meter = Meter(label: "b", factory: registry)
        meter.increment(by: 3.0)
        meter.decrement()
        registry.collect { [MetricSample("b", ["kind": "read"], 1.5)] }
        #expect(lines("b") == ["b 2", #"b{kind="read"} 1.5"#])
    }

    @Test func `a label cannot end its quotes or its line`() {
        Counter(label: "a_total", dimensions: [("x", "\"\\\n} 9")], factory: registry).increment()
        #expect(lines("a_total") == [#"a_total{x="\"\\\n} 9"} 1"#])
    }

    @Test func `a family keeps a bounded number of series and counts the others`() {
        for number in 0..<(PrometheusRegistry.maximumSeries + 5) {
            Counter(label: "a_total", dimensions: [("x", "\(number)")], factory: registry).increment()
        }
        #expect(lines("a_total").count == PrometheusRegistry.maximumSeries)
        #expect(lines("postern_metrics_series_refused_total") == ["postern_metrics_series_refused_total 5"])
    }

    @Test func `a label that was used for another kind is recorded nowhere`() {
        Timer(label: "a_total", factory: registry).recordSeconds(1)
        Counter(label: "b", factory: registry).increment()
        #expect(lines("a_total").isEmpty && lines("b").isEmpty)
    }

    @Test func `concurrent increments are all counted`() async {
        let counter = Counter(label: "a_total", factory: registry)
        let meter = Meter(label: "b", factory: registry)
        await withTaskGroup { tasks in
            for _ in 0..<8 {
                tasks.addTask {
                    for _ in 0..<1000 {
                        counter.increment()
                        meter.increment()
                    }
                }
            }
        }
        #expect(lines("a_total") == ["a_total 8000"] && lines("b") == ["b 8000"])
    }
}
