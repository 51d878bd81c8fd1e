import Logging
import Persistence

/// What `serve`, `doctor` and `keys reseal` say about the lines of the key file.
enum KeyLines {
    /// Counts over all realms. - Throws: ``CommandFailure`` when something depends on a line that the file lacks.
    static func check(conninfo: String, keyring: Keyring) async throws -> KeyLineUse {
        let use = try await OneOffDatabase.use(conninfo, statementTimeout: .seconds(60)) {
            try await KeyLineStore($0).use()
        }
        try requireNothingMissing(use, keyring: keyring)
        return use
    }

    /// - Throws: ``CommandFailure`` that says which line is missing, what depends on it, and what to do.
    static func requireNothingMissing(_ use: KeyLineUse, keyring: Keyring) throws {
        let missing = use.missing(from: keyring)
        guard missing.isEmpty else { throw CommandFailure(explanation(of: missing, use)) }
    }

    private static func explanation(of missing: [String], _ use: KeyLineUse) -> String {
        let lines = missing.map { "line \($0), which still protects \(use.sentence(for: $0) ?? "something")" }
        let forget = missing.map { "admin.forget_key_line('\($0)')" }.joined(separator: ", ")
        return
            "POSTERN_SECRET_KEY_FILE lacks \(lines.joined(separator: "; ")): "
            + "put it back as an older line, and remove it only when `postern keys reseal` says so. "
            + "If it is lost for good, SELECT \(forget) ends and deletes what only it opens"
    }

    /// One sentence per line of the file, in its order.
    static func sentences(_ use: KeyLineUse, keyring: Keyring) -> [String] {
        let removable = Set(use.removable(from: keyring))
        return keyring.keys.enumerated().map { index, key in
            let place = index == 0 ? "newest" : "older"
            guard let protects = use.sentence(for: key.name) else {
                return removable.contains(key.name)
                    ? "line \(key.name) (\(place)): nothing stands on it, it may be removed"
                    : "line \(key.name) (\(place)): nothing stands on it"
            }
            return "line \(key.name) (\(place)): \(protects)" + (index == 0 ? "" : advice(use.counts[key.name] ?? [:]))
        }
    }

    private static func advice(_ counts: [KeyLineUse.Kind: Int]) -> String {
        counts.keys.contains { $0 != .session }
            ? "; `postern keys reseal` moves them" : "; each leaves with its next refresh or its end"
    }

    /// One log line per line of the file.
    static func log(_ use: KeyLineUse, keyring: Keyring, to logger: Logger) {
        for sentence in sentences(use, keyring: keyring) {
            logger.notice("key file", metadata: ["state": "\(sentence)"])
        }
    }
}
