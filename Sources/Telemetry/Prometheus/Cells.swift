import CoreMetrics
import Synchronization

/// The value of a counter.
final class CounterCell: CounterHandler {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }
    func reset() { value.store(0, ordering: .relaxed) }
    var current: Int64 { value.load(ordering: .relaxed) }
}

/// The value of a gauge.
final class GaugeCell: MeterHandler, RecorderHandler {
    private let bits = Atomic<UInt64>(0)

    var current: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func decrement(by amount: Double) { increment(by: -amount) }

    func increment(by amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, found) = bits.compareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = found
        }
    }
}

/// The buckets of a histogram; durations are in seconds.
final class HistogramCell: RecorderHandler, TimerHandler {
    struct Values: Sendable {
        /// One more than there are bounds; not cumulative.
        var buckets: [UInt64]
        var sum = 0.0
        var count: UInt64 = 0
    }

    let bounds: [Double]
    private let values: Mutex<Values>

    init(bounds: [Double]) {
        self.bounds = bounds
        values = Mutex(Values(buckets: [UInt64](repeating: 0, count: bounds.count + 1)))
    }

    var current: Values { values.withLock { $0 } }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        var bucket = 0
        while bucket < bounds.count, value > bounds[bucket] { bucket += 1 }
        values.withLock { values in
            values.buckets[bucket] += 1
            values.sum += value
            values.count += 1
        }
    }
}
