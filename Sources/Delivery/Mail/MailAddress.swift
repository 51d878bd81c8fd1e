/// An address that is safe in an SMTP envelope and in a header field, without quoting.
///
/// Narrower than RFC 5321 §4.1.2 on purpose: the local part is a dot-string (`atext` and dots, or non-ASCII letters as
/// of RFC 6531), the domain a list of labels. No quoted local part, no address literal, no comment, no source route;
/// nothing that could be read as an option or a pipe by a program further down the line.
public struct MailAddress: Sendable, Hashable {
    /// The address as given.
    public let text: String

    /// The part after the `@`.
    public var domain: Substring { text[(text.lastIndex(of: "@").map(text.index(after:)) ?? text.endIndex)...] }

    /// - Returns: `nil` unless `text` is an address of the form above, of at most 254 bytes.
    public init?(_ text: String) {
        guard text.utf8.count <= 254, let at = text.lastIndex(of: "@") else { return nil }
        let local = text[..<at]
        let domain = text[text.index(after: at)...]
        guard (1...64).contains(local.utf8.count), local.unicodeScalars.allSatisfy(Self.isLocal),
            let first = local.utf8.first, first != 0x2D, first != 0x7C,
            local.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty })
        else { return nil }
        guard
            domain.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ label in
                (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                    && label.unicodeScalars.allSatisfy(Self.isDomain)
            })
        else { return nil }
        self.text = text
    }

    private static func isLocal(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", ".", "!", "#", "$", "%", "&", "'", "*", "+", "-", "/", "=", "?", "^", "_",
            "`", "{", "|", "}", "~":
            true
        default: isPrintableNonASCII(scalar)
        }
    }

    private static func isDomain(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-": true
        default: isPrintableNonASCII(scalar)
        }
    }

    /// Letters, marks, numbers and symbols; no C1 control, separator, formatting or unassigned character.
    private static func isPrintableNonASCII(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.value >= 0xA0 else { return false }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator,
            .spaceSeparator:
            return false
        default: return true
        }
    }
}
