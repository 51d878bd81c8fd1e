public import Mustache

/// The texts of one language for one page or message. A template names them: `{{t.address-title}}`.
public struct Texts: Sendable, MustacheParent {
    /// The language.
    public let language: Language
    private let catalogue: TextCatalogue
    private let own: [String: String]
    private var values: [String: String] = [:]

    init(language: Language, catalogue: TextCatalogue, own: [String: String]) {
        self.language = language
        self.catalogue = catalogue
        self.own = own
    }

    /// The texts with values for placeholders. Values are cleaned (``DisplayText``) and never looked at again.
    public func filling(_ values: [String: String]) -> Texts {
        var texts = self
        for (name, value) in values { texts.values[name] = isolated(Self.filler(value)) }
        return texts
    }

    /// A value as it stands in a text.
    public static func filler(_ value: String) -> String { DisplayText.clean(value, limit: 320) }

    /// A text with its values in place; its key if there is no such text, which a test excludes.
    public subscript(key: String) -> String {
        fill(own[key] ?? catalogue.text(key, in: language) ?? key)
    }

    /// The text of a template's variable.
    public func child(named key: String) -> Any? { self[key] }

    /// One pass: what a value contains is not a placeholder.
    private func fill(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "{")) else { return text }
        var filled = ""
        var rest = text[...]
        while let open = rest.utf8.firstIndex(of: UInt8(ascii: "{")),
            let close = rest[open...].utf8.firstIndex(of: UInt8(ascii: "}"))
        {
            let name = String(rest[rest.index(after: open)..<close])
            filled += rest[..<open]
            filled += values[name] ?? "{\(name)}"
            rest = rest[rest.index(after: close)...]
        }
        return filled + rest
    }

    /// In a text from right to left, a value keeps its own direction (Unicode isolates, UAX #9 §2.4).
    private func isolated(_ value: String) -> String {
        language.direction == "rtl" ? "\u{2068}\(value)\u{2069}" : value
    }
}
