import Foundation
import Logging

/// One line per event on stderr, as text or JSON; every value is escaped, so no caller can forge a line.
struct LineLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel: Logger.Level
    let asJSON: Bool

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var fields: [(String, String)] = [
            (
                "time",
                Date().formatted(
                    .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
            ), ("level", event.level.rawValue),
            ("message", event.message.description),
        ]
        let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
        fields += all.sorted { $0.key < $1.key }.map { ($0.key, "\($0.value)") }
        let line = asJSON ? Self.json(fields) : Self.text(fields)
        LogWriter.shared.write(line)
    }

    private static func text(_ fields: [(String, String)]) -> String {
        fields.map { name, value in
            switch name {
            case "time", "level": value
            case "message": escaped(value, quotes: false)
            default: "\(name)=\(quoted(value))"
            }
        }.joined(separator: " ")
    }

    private static func json(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(quoted($0)):\(quoted($1))" }.joined(separator: ",") + "}"
    }

    private static func quoted(_ value: String) -> String {
        "\"" + escaped(value) + "\""
    }

    /// - Parameter quotes: whether quotation marks are escaped, too.
    private static func escaped(_ value: String, quotes: Bool = true) -> String {
        value.unicodeScalars.reduce(into: "") { escaped, scalar in
            switch scalar {
            case "\"" where !quotes: escaped.append("\"")
            case "\"", "\\": escaped += "\\\(scalar)"
            case _
            where scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value) || scalar.value == 0x2028
                || scalar.value == 0x2029:
                let hex = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: escaped.unicodeScalars.append(scalar)
            }
        }
    }
}

extension Logger {
    /// The program's logger.
    static func postern(level: Logger.Level, json: Bool) -> Logger {
        Logger(label: "postern") { _ in LineLogHandler(logLevel: level, asJSON: json) }
    }
}
