import Foundation
import Testing

@testable import Texts

@Suite("Texts")
struct TextsTests {
    private let catalogue: TextCatalogue

    init() throws {
        catalogue = try TextCatalogue()
    }

    @Test(arguments: Language.allCases)
    func `every language has every text with the same placeholders`(_ language: Language) throws {
        let file = try #require(Embedded.templates.first { $0.name == "\(language.tag).json" })
        let texts = try JSONDecoder().decode([String: String].self, from: Data(file.text.utf8))
        let english = Dictionary(uniqueKeysWithValues: catalogue.keys.map { ($0.key, $0.text) })
        #expect(Set(texts.keys) == Set(english.keys))
        for (key, text) in texts {
            #expect(!text.isEmpty, "\(key)")
            #expect(
                Set(TextCatalogue.placeholders(of: text)) == Set(TextCatalogue.placeholders(of: english[key] ?? "")),
                "\(key)")
        }
    }

    @Test func `values are put in once and cleaned`() {
        let texts = catalogue.texts(in: .english).filling(["client": "{client} \u{202E}evil\n<b>"])
        #expect(texts["address-lead"] == "to continue to {client} evil <b>")
    }

    @Test(arguments: [
        (0, "1 January 1970, 00:00 (UTC)"), (1_795_356_239, "22 November 2026, 14:03 (UTC)"),
        (951_782_400, "29 February 2000, 00:00 (UTC)"), (4_107_542_399, "28 February 2100, 23:59 (UTC)"),
        (4_107_542_400, "1 March 2100, 00:00 (UTC)"), (-1, "1 January 1970, 00:00 (UTC)"),
        (.infinity, "1 January 1970, 00:00 (UTC)"), (1e300, "31 December 9999, 23:59 (UTC)"),
    ])
    func `a time names its zone and is exact to the minute`(_ seconds: Double, _ text: String) {
        #expect(catalogue.texts(in: .english).time(seconds) == text)
    }

    @Test(arguments: [
        (Language.german, "3. Dezember 2026, 09:05 Uhr (UTC)"), (.french, "3 décembre 2026 à 09:05 (UTC)"),
        (.spanish, "3 de diciembre de 2026, 09:05 (UTC)"), (.polish, "3 grudnia 2026, 09:05 (UTC)"),
        (.japanese, "2026年12月3日 09:05（UTC）"),
    ])
    func `a time is written as readers of the language write it`(_ language: Language, _ text: String) {
        #expect(catalogue.texts(in: language).time(1_796_288_700) == text)
    }

    @Test(arguments: Language.allCases)
    func `every language names twelve months`(_ language: Language) {
        #expect(catalogue.texts(in: language)["time-months"].split(separator: ",").count == 12)
    }

    @Test func `a realm's own text comes first`() {
        let texts = catalogue.texts(in: .german, replacedBy: ["cancel": "Zurück"])
        #expect(texts["cancel"] == "Zurück")
    }

    @Test func `a value in a text from right to left keeps its direction`() {
        let texts = catalogue.texts(in: .arabic).filling(["client": "Acme"])
        #expect(texts["address-lead"].contains("\u{2068}Acme\u{2069}"))
    }

    @Test(
        arguments: [
            (["xx", "de-AT", "fr"], "it", Language.german), ([], "tr-TR,tr;q=0.9,en;q=0.8", .turkish),
            ([], "de;q=0, fr;q=0.3, nl;q=0.4", .dutch), ([], "sv, *;q=0.1", .polish), ([], "PT", .brazilianPortuguese),
            ([], "de;q=2, en;q=1", .english), ([], "", .polish), ([], "<script>", .polish),
            ([], String(repeating: "sv,", count: 4000) + "de", .polish),
        ] as [([String], String, Language)])
    func `the language is the one asked for`(_ asked: [String], _ accepted: String, _ expected: Language) {
        #expect(Language.choose(uiLocales: asked, accepted: accepted, default: .polish) == expected)
    }
}
