/// Where a realm sends messages to phones, and what that costs (`admin.set_phone_policy`, `admin.put_phone_prefix`).
public struct PhonePolicy: Sendable, Equatable {
    /// ISO 3166 codes; without any no message is sent.
    public let regions: Set<String>
    /// The country of numbers that people type without a country code.
    public let defaultRegion: String?
    /// Messages per handle, resends included.
    public let sends: Int
    /// By their beginning: `+` and digits.
    let prefixes: [String: Prefix]

    struct Prefix: Sendable, Equatable {
        let isDenied: Bool
        let cost: Int
    }

    /// Whether the longest prefix that fits is denied. - Parameter number: E.164.
    func isDenied(_ number: String) -> Bool { rule(for: number)?.isDenied ?? false }

    /// What a message costs, in units of the daily budget. - Parameter number: E.164.
    func cost(of number: String) -> Int { rule(for: number)?.cost ?? 1 }

    private func rule(for number: String) -> Prefix? {
        var prefix = number[...]
        while prefix.utf8.count > 1 {
            if let rule = prefixes[String(prefix)] { return rule }
            prefix = prefix.dropLast()
        }
        return nil
    }
}

/// As `postern.phones_config` writes it.
struct PhonePolicyRecord: Decodable {
    let regions: [String]
    let defaultRegion: String?
    let sends: Int
    let prefixes: [PrefixRecord]

    struct PrefixRecord: Decodable {
        let prefix: String
        let denied: Bool
        let cost: Int
    }
}

extension PhonePolicy {
    init(_ record: PhonePolicyRecord) {
        regions = Set(record.regions)
        defaultRegion = record.defaultRegion
        sends = record.sends
        prefixes = Dictionary(
            record.prefixes.map { ($0.prefix, Prefix(isDenied: $0.denied, cost: $0.cost)) }
        ) { first, _ in first }
    }
}
