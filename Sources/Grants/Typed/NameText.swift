/// A name that a person gives to himself or to a thing of his: of people, passkeys and devices.
///
/// Names are shown in mails and lists: a name may neither break a line nor turn the text around it, and it must be
/// visible. Everything else is a name: joiners and variation selectors make up emoji, flags and words of many scripts.
/// Counted and trimmed by code point, as PostgreSQL does (`postern.person_name` holds the same rule). By `Character`,
/// `" \u{301}x"` would begin with one that is not white space.
public enum NameText {
    /// The name as it is stored. - Returns: `nil` if the text is no name of at most so many code points and 256 bytes.
    public static func read(_ typed: String, longest: Int) -> String? {
        guard typed.utf8.count <= maximumBytes else { return nil }
        var scalars = typed.unicodeScalars[...]
        while let first = scalars.first, isMargin(first) { scalars.removeFirst() }
        while let last = scalars.last, isMargin(last) { scalars.removeLast() }
        guard let first = scalars.first, scalars.count <= longest, !isContinuation(first),
            scalars.allSatisfy({ !isForbidden($0) })
        else { return nil }
        let name = String(Substring(scalars))
        return name.utf8.count <= maximumStoredBytes ? name : nil
    }

    /// The longest text that is looked at: what copying brings around a name is short.
    private static let maximumBytes = 1024
    /// The longest name that is stored: strangers give names, too, and a code point has up to four bytes.
    private static let maximumStoredBytes = 256

    /// What vanishes around a name: white space, a Braille cell without dots, and what has no appearance; not what ends
    /// an emoji (❤️, the flag of Wales) nor what is forbidden anywhere. What remains begins with something to be seen.
    static func isMargin(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.value == 0x2800
            || scalar.isBlank && !scalar.properties.isVariationSelector && !isTag(scalar) && !isForbidden(scalar)
    }

    /// Combining marks and the tags of flags: a name begins with none of them.
    static func isContinuation(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: isTag(scalar)
        }
    }

    private static func isTag(_ scalar: Unicode.Scalar) -> Bool { (0xE0020...0xE007F).contains(scalar.value) }

    private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Embeddings, overrides and isolates: they order text that follows the name.
        case 0x202A...0x202E, 0x2066...0x2069: true
        default:
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
    }
}

/// A given or family name as typed: 1 to 100 code points, at most 256 bytes (``NameText``).
public struct PersonName: Sendable, Equatable {
    /// What is stored.
    public let text: String

    /// `nil` if the text is not a valid name.
    public init?(_ typed: String) {
        guard let name = NameText.read(typed, longest: 100) else { return nil }
        text = name
    }

    /// Whether nothing but white space was typed.
    public static func isBlank(_ typed: String) -> Bool {
        typed.unicodeScalars.allSatisfy(\.properties.isWhitespace)
    }
}
