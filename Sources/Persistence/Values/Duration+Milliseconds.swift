extension Duration {
    /// Whole nanoseconds; for what a process measures, which never overflows.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
    }

    /// Whole milliseconds, saturating.
    var milliseconds: Int {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow
            ? Int(Int32.max) : Int(clamping: min(product + attoseconds / 1_000_000_000_000_000, Int64(Int32.max)))
    }
}
