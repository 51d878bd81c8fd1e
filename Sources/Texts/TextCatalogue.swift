import Foundation

/// The texts of pages and messages, in every language, as they are in the binary (`Templates/<tag>.json`).
///
/// A text may hold placeholders: `{client}`. A realm may replace any text, also in languages that the binary lacks
/// (`admin.put_text`).
public struct TextCatalogue: Sendable {
    private let texts: [Language: [String: String]]

    /// The binary's catalogue.
    /// - Throws: an error if a file in the binary is not a JSON object of texts.
    public init() throws {
        var texts: [Language: [String: String]] = [:]
        for file in Embedded.templates {
            guard let language = Language(rawValue: String(file.name.dropLast(".json".count))) else { continue }
            texts[language] = try JSONDecoder().decode([String: String].self, from: Data(file.text.utf8))
        }
        self.texts = texts
    }

    /// Every key, sorted, with its English text.
    public var keys: [(key: String, text: String)] {
        (texts[.english] ?? [:]).map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    /// A text of the binary; the English one where a language lacks it.
    public func text(_ key: String, in language: Language) -> String? {
        texts[language]?[key] ?? texts[.english]?[key]
    }

    /// The texts of one language, a realm's own in front.
    public func texts(in language: Language, replacedBy own: [String: String] = [:]) -> Texts {
        Texts(language: language, catalogue: self, own: own)
    }

    /// The placeholders of a text, without braces, in order.
    public static func placeholders(of text: String) -> [String] {
        text.split(separator: "{").dropFirst(text.hasPrefix("{") ? 0 : 1).compactMap { piece in
            piece.firstIndex(of: "}").map { String(piece[..<$0]) }
        }
    }
}
