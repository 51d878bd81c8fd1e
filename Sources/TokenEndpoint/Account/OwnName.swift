/// The name of a person.
enum OwnName {
    /// The name without white space around it, taken away by code point; `nil` when what remains is no name: 1 to 100 code points,
    /// no control, line separator or bidirectional override, and no combining mark at the beginning.
    static func trimmed(_ text: String) -> String? {
        let scalars = text.unicodeScalars
        guard let start = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let end = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return nil }
        let name = scalars[start...end]
        guard name.count <= 100, !isMark(scalars[start]), name.allSatisfy(isPlain) else { return nil }
        return String(name)
    }

    private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: false
        default: !(0x202A...0x202E).contains(scalar.value) && !(0x2066...0x2069).contains(scalar.value)
        }
    }
}
