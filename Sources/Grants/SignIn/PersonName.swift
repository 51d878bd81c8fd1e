/// A given or family name as typed: trimmed of white space, 1 to 100 code points, without controls, line separators and
/// bidirectional overrides. The first code point is not a combining mark.
///
/// Counted and trimmed by code point, as PostgreSQL does (`postern.person_name`). By `Character`, `" \u{301}x"` would
/// begin with one that is not white space.
public struct PersonName: Sendable, Equatable {
    /// What is stored.
    public let text: String

    /// `nil` if the text is not a valid name.
    public init?(_ typed: String) {
        let scalars = Self.trimmed(typed)
        guard let first = scalars.first, scalars.count <= 100, !Self.isCombiningMark(first),
            scalars.allSatisfy({ !Self.isForbidden($0) })
        else { return nil }
        text = String(Substring(scalars))
    }

    /// Whether nothing but white space was typed.
    public static func isBlank(_ typed: String) -> Bool {
        typed.unicodeScalars.allSatisfy(\.properties.isWhitespace)
    }

    private static func trimmed(_ typed: String) -> Substring.UnicodeScalarView {
        var scalars = typed.unicodeScalars[...]
        while scalars.first?.properties.isWhitespace == true { scalars.removeFirst() }
        while scalars.last?.properties.isWhitespace == true { scalars.removeLast() }
        return scalars
    }

    /// Of what joins the character before it, also the zero-width joiners.
    static func isCombiningMark(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isJoinControl { return true }
        return switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

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
