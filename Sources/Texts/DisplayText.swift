/// Cleans names that people chose (realms, passkeys) before they are put into a subject, a header or a sentence.
public enum DisplayText {
    /// `text` on one line: controls, line and paragraph separators and all spaces become single spaces, invisible
    /// formatting (bidirectional overrides, zero-width characters except joiners, tags) disappears, and the result has
    /// at most `limit` Unicode scalars.
    public static func clean(_ text: String, limit: Int = 80) -> String {
        guard !isClean(text.utf8, limit) else { return text }
        var cleaned = String.UnicodeScalarView()
        // Counting a view walks it.
        var count = 0
        var pendingSpace = false
        for scalar in text.unicodeScalars {
            // Printable ASCII needs no look at the tables of Unicode.
            switch (0x21...0x7E).contains(scalar.value) ? .otherLetter : scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator:
                pendingSpace = !cleaned.isEmpty
                continue
            case .format where scalar == "\u{200C}" || scalar == "\u{200D}": break
            case .format, .unassigned, .surrogate, .privateUse: continue
            default: break
            }
            guard count + (pendingSpace ? 2 : 1) <= limit else { break }
            if pendingSpace { cleaned.append(" ") }
            count += pendingSpace ? 2 : 1
            pendingSpace = false
            cleaned.append(scalar)
        }
        return String(cleaned)
    }

    /// Whether a mail program may make a link of a part of a text: of a URL, a host, an address or a phone number.
    /// Rather too often than too seldom.
    public static func holdsAddress(_ text: String) -> Bool {
        var digits = 0
        // Letters since the last dot; `nil`: there was none in this word.
        var letters: Int?
        for scalar in text.unicodeScalars {
            let isLetter = scalar.properties.isAlphabetic
            switch scalar {
            case "/", "\\", "@", "／", "＼", "＠": return true
            case ".", "。", "．", "｡": letters = 0
            default: letters = isLetter ? letters.map { $0 + 1 } : scalar.properties.isWhitespace ? nil : letters
            }
            if scalar.properties.numericType == .decimal { digits += 1 }
            if letters ?? 0 >= 2 || digits >= 7 { return true }
        }
        return false
    }

    /// Whether a text is printable ASCII with single spaces between words, as most names are: then it stays as it is.
    private static func isClean(_ text: String.UTF8View, _ limit: Int) -> Bool {
        guard text.count <= limit else { return false }
        var wasSpace = true
        for byte in text {
            guard (0x20...0x7E).contains(byte), byte != 0x20 || !wasSpace else { return false }
            wasSpace = byte == 0x20
        }
        return !wasSpace || text.isEmpty
    }
}
