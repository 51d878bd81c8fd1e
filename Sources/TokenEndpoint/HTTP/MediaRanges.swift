import HTTPTypes

/// What a request says it prefers (`Accept`, RFC 9110 §12.5.1).
struct MediaRanges: Sendable {
    /// Lower-case range without parameters, and its weight in thousandths.
    private let ranges: [(range: Substring, weight: Int)]

    /// More than that is not looked at.
    private static let maximumRanges = 32, maximumLength = 1024

    /// - Parameter fields: the values of all `Accept` fields. What cannot be read is left out.
    init(_ fields: [String]) {
        ranges = fields.joined(separator: ",").lowercased().prefix(Self.maximumLength)
            .split(separator: ",", maxSplits: Self.maximumRanges)
            .compactMap { part in
                let parts = part.split(separator: ";").map(\.trimmingSpaces)
                guard let range = parts.first, !range.isEmpty else { return nil }
                let quality = parts.dropFirst().first { $0.hasPrefix("q=") }
                guard let weight = quality.map({ Self.weight($0.dropFirst(2)) }) ?? 1000 else { return nil }
                return (range, weight)
            }
    }

    /// The weight of a type, 0 to 1000, by the most specific range that covers it.
    /// - Parameter isNamed: whether wildcards count.
    func weight(of type: String, isNamed: Bool = false) -> Int {
        let family = type.prefix { $0 != "/" } + "/*"
        for range in isNamed ? [type[...]] : [type[...], family[...], "*/*"] {
            if let weight = ranges.last(where: { $0.range == range })?.weight { return weight }
        }
        return 0
    }

    /// `0`, `1`, or a decimal of up to three places (RFC 9110 §12.4.2); `nil` for anything else.
    private static func weight(_ text: Substring) -> Int? {
        let digits = Array(text.utf8)
        guard (1...5).contains(digits.count), digits[0] == 0x30 || digits[0] == 0x31,
            digits.count == 1 || digits[1] == 0x2E
        else { return nil }
        var weight = Int(digits[0] - 0x30) * 1000
        for (digit, value) in zip(digits.dropFirst(2), [100, 10, 1]) {
            guard (0x30...0x39).contains(digit) else { return nil }
            weight += Int(digit - 0x30) * value
        }
        return weight <= 1000 ? weight : nil
    }
}
