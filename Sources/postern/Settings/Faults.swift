/// Reasons why a command cannot do its work, gathered so that all of them are told at once.
final class Faults {
    private(set) var texts: [String] = []

    /// Notes a reason.
    func note(_ text: String) { texts.append(text) }

    /// What `body` returns; `nil` when it throws, which is noted.
    func value<Value>(_ body: () throws -> Value) -> Value? {
        do {
            return try body()
        } catch {
            note("\(error)")
            return nil
        }
    }

    /// - Throws: one line with all that was noted, if anything was.
    func end() throws {
        guard texts.isEmpty else { throw CommandFailure(texts.joined(separator: "; ")) }
    }
}

/// The lines of a settings file that are not read as what they look like.
enum SettingsFile {
    /// - Returns: one sentence for each such line.
    static func faults(in text: String, path: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            let line = line.trimmingPrefix { $0.isWhitespace }
            guard !line.isEmpty, line.first != "#" else { return nil }
            let name = line.prefix { $0 != "=" }
            let place = "line \(index + 1) of \(path)"
            guard name.endIndex != line.endIndex,
                name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*\s*/) != nil
            else { return "\(place) is not NAME=value" }
            let value = line[name.endIndex...].dropFirst()
            let quotes: Set<Character> = ["\u{22}", "\u{27}"]
            guard let first = value.first(where: { !$0.isWhitespace }), quotes.contains(first) else { return nil }
            return "\(place) has a value in quotes: give it without, nothing is taken out of a value"
        }
    }
}
