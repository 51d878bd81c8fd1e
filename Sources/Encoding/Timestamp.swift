import Foundation

/// Instants on the wire.
public enum Timestamp {
    /// RFC 3339, UTC, milliseconds.
    public static func text(_ secondsSinceEpoch: Double) -> String {
        Date(timeIntervalSince1970: secondsSinceEpoch)
            .formatted(
                .iso8601.year().month().day().time(includingFractionalSeconds: true).timeZone(separator: .omitted))
    }
}
