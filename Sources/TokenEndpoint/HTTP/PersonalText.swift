import Foundation

/// Texts that people give themselves or their things.
enum PersonalText {
    /// Free of anything that could break a line or hide text in a mail or list.
    static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
            default: true
            }
        }
    }
}

/// Instants on the wire.
enum Timestamp {
    /// RFC 3339, UTC, milliseconds.
    static func text(_ secondsSinceEpoch: Double) -> String {
        Date(timeIntervalSince1970: secondsSinceEpoch)
            .formatted(
                .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }
}
