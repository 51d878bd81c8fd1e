public import Logging
import Synchronization

/// Keeps every log line, metadata included.
public final class LogCapture: Sendable {
    private let kept = Mutex<[String]>([])

    /// `level message [metadata]`.
    public var lines: [String] { kept.withLock { $0 } }

    /// Nothing yet.
    public init() {}

    /// A logger whose lines are kept.
    public var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(capture: self) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let capture: LogCapture
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let line = "\(event.level) \(event.message) \(event.metadata ?? [:]) \(metadata)"
            capture.kept.withLock { $0.append(line) }
        }
    }
}
