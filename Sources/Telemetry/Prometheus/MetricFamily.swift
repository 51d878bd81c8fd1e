/// A metric with all of its series, as the exposition text describes it.
public struct MetricFamily: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    let help: String
    /// Upper bounds of the buckets of a histogram, rising.
    let bounds: [Double]

    private init(_ name: String, _ kind: Kind, _ help: String, bounds: [Double] = []) {
        self.name = name
        self.kind = kind
        self.help = help
        self.bounds = bounds
    }

    /// A value that only rises.
    public static func counter(_ name: String, _ help: String) -> MetricFamily { MetricFamily(name, .counter, help) }

    /// A value of this moment.
    public static func gauge(_ name: String, _ help: String) -> MetricFamily { MetricFamily(name, .gauge, help) }

    /// How values are distributed. - Parameter bounds: upper bounds of the buckets, rising.
    public static func histogram(
        _ name: String, _ help: String, bounds: [Double] = MetricFamily.seconds
    ) -> MetricFamily {
        MetricFamily(name, .histogram, help, bounds: bounds)
    }

    /// Bounds for durations of requests.
    public static let seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

    /// A family of a label that was not declared.
    static func undeclared(_ name: String, _ kind: Kind) -> MetricFamily {
        MetricFamily(name, kind, "Not described.", bounds: kind == .histogram ? seconds : [])
    }
}

/// A value that is read when the text is asked for: the state of something that is kept elsewhere.
public struct MetricSample: Sendable {
    let name: String
    let labels: [(String, String)]
    let value: Double

    /// A sample of the family `name`.
    public init(_ name: String, _ labels: [(String, String)], _ value: Double) {
        self.name = name
        self.labels = labels
        self.value = value
    }

    /// A sample of the family `name`.
    public init(_ name: String, _ labels: KeyValuePairs<String, String>, _ value: Double) {
        self.init(name, labels.map { ($0.key, $0.value) }, value)
    }

    /// A sample without labels.
    public init(_ name: String, _ value: Double) { self.init(name, [], value) }
}
