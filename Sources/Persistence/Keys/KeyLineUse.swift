/// What each line of the key file still protects, over all realms: whether a line may go, and whether one is missing.
public struct KeyLineUse: Sendable, Equatable {
    /// What depends on a line of the key file.
    public enum Kind: String, Sendable, CaseIterable {
        /// A data key, for any purpose.
        case dataKey = "data-key"
        case signingKey = "signing-key"
        case totpSeed = "totp-seed"
        case recoveryCode = "recovery-code"
        case testCode = "test-code"
        /// A refresh family whose live token was made under the line.
        case session

        /// For sentences.
        func counted(_ count: Int) -> String {
            let (one, many) =
                switch self {
                case .dataKey: ("data key", "data keys")
                case .signingKey: ("signing key", "signing keys")
                case .totpSeed: ("TOTP seed", "TOTP seeds")
                case .recoveryCode: ("recovery code", "recovery codes")
                case .testCode: ("test code", "test codes")
                case .session: ("live session", "live sessions")
                }
            return "\(count) \(count == 1 ? one : many)"
        }
    }

    /// By the line's id in hexadecimal, then by kind; no zero.
    public private(set) var counts: [String: [Kind: Int]] = [:]

    /// Nothing yet.
    public init() {}

    /// Adds to a line's count. - Parameter line: its id, 4 bytes.
    public mutating func add(_ count: Int, _ kind: Kind, to line: [UInt8]) {
        guard count > 0 else { return }
        counts[ServerKey.name(line), default: [:]][kind, default: 0] += count
    }

    /// Adds what depends on the lines in another cluster.
    public mutating func add(_ other: KeyLineUse) {
        counts.merge(other.counts) { $0.merging($1, uniquingKeysWith: +) }
    }

    /// The names of lines that are still needed and missing in the file.
    public func missing(from keyring: Keyring) -> [String] {
        let present = Set(keyring.keys.map(\.name))
        return counts.keys.filter { !present.contains($0) }.sorted()
    }

    /// Older lines of the file that nothing depends on: they may be removed.
    public func removable(from keyring: Keyring) -> [String] {
        keyring.keys.dropFirst().map(\.name).filter { counts[$0] == nil }
    }

    /// What depends on a line, as text: "2 data keys (1 signing key, 40 TOTP seeds), 12 live sessions"; `nil` for
    /// nothing.
    public func sentence(for line: String) -> String? { Self.sentence(counts[line] ?? [:]) }

    private static func sentence(_ counts: [Kind: Int]) -> String? {
        func list(_ kinds: [Kind]) -> String {
            kinds.compactMap { kind in counts[kind].map { kind.counted($0) } }.joined(separator: ", ")
        }
        let secrets = list([.signingKey, .totpSeed, .recoveryCode, .testCode])
        let keys = list([.dataKey])
        let parts = [
            keys.isEmpty ? secrets : secrets.isEmpty ? keys : "\(keys) (\(secrets))", list([.session]),
        ]
        let sentence = parts.filter { !$0.isEmpty }.joined(separator: ", ")
        return sentence.isEmpty ? nil : sentence
    }
}
