/// A language that pages and messages are written in.
public enum Language: String, Sendable, CaseIterable {
    case english = "en"
    case german = "de"
    case french = "fr"
    case spanish = "es"
    case italian = "it"
    case dutch = "nl"
    case polish = "pl"
    case brazilianPortuguese = "pt-BR"
    case turkish = "tr"
    case japanese = "ja"
    case arabic = "ar"

    /// The language tag (BCP 47), as `lang` of a page and in discovery.
    public var tag: String { rawValue }

    /// `dir` of a page.
    public var direction: String { self == .arabic ? "rtl" : "ltr" }

    /// The language of a tag, by its primary subtag; `nil` when there are no texts in it (RFC 4647 §3.4). Locales of
    /// operating systems are written with `_`.
    public init?(tag: String) {
        guard tag.utf8.count <= 35 else { return nil }
        let primary = tag.utf8.prefix { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_") }.map { $0 | 0x20 }
        guard let language = Self.byPrimarySubtag[primary] else { return nil }
        self = language
    }

    /// The first language that `ui_locales` names, else the best one of `Accept-Language`, else the default.
    /// - Parameters:
    ///   - uiLocales: language tags, best first (OIDC Core §3.1.2.1).
    ///   - accepted: the value of `Accept-Language` (RFC 9110 §12.5.4); only its first 1,024 bytes are read.
    public static func choose(uiLocales: [String] = [], accepted: String?, default fallback: Language) -> Language {
        uiLocales.lazy.compactMap { Language(tag: $0) }.first ?? preferred(in: accepted, any: fallback) ?? fallback
    }

    /// The best language of `Accept-Language`; `nil` when it names none that there are texts in.
    /// - Parameter any: what `*` stands for.
    public static func preferred(in accepted: String?, any: Language? = nil) -> Language? {
        var best: (language: Language, weight: Int)?
        for range in (accepted ?? "").utf8.prefix(1024).split(separator: UInt8(ascii: ",")) {
            let parts = String(decoding: Array(range), as: UTF8.self).split(separator: ";").map(Self.trimmed)
            guard let tag = parts.first, let language = tag == "*" ? any : Language(tag: tag) else { continue }
            let weight = Self.weight(parts.dropFirst())
            if weight > best?.weight ?? 0 { best = (language, weight) }
        }
        return best?.language
    }

    private static let byPrimarySubtag = Dictionary(
        uniqueKeysWithValues: allCases.map { (Array($0.rawValue.utf8.prefix(2)), $0) })

    private static func trimmed(_ text: Substring) -> String {
        String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }

    /// `q` in thousandths. A malformed one counts as 0, so that the range is not used.
    private static func weight(_ parameters: ArraySlice<String>) -> Int {
        guard let q = parameters.first(where: { $0.lowercased().hasPrefix("q=") }) else { return 1000 }
        guard let value = Double(q.dropFirst(2)), (0...1).contains(value) else { return 0 }
        return Int(value * 1000)
    }
}
