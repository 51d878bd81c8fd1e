import Grants
@testable import HostedPages
import Persistence
import Testing
import Texts
import TokenEndpoint

@Suite("Shells of pages")
struct PageShellTests {
    private static let hostile = ["<b>&\"'", "\u{300}\"\u{301}<", "{client}", "{{tx}}", "", "أحمد", "\u{202E}x"]

    /// What the engine makes of the same values at once.
    private static func whole(
        _ template: String, step: String, error: String?, title: String, _ values: [String: Any], _ look: PageLook
    ) throws -> String {
        let texts = look.texts
        var all = look.values(texts, AssetNames(base: "b", accent: "a")).merging(values) { $1 }
        all["step"] = step
        all["title"] = texts[title]
        if let error { all["error"] = error }
        return try #require(try TemplateLibrary(Embedded.templates).render(template, all))
    }

    @Test(arguments: Language.allCases)
    func `a page is the same as if it were rendered anew`(_ language: Language) throws {
        let renderer = try PageRenderer { _ in AssetNames(base: "b", accent: "a") }
        let identity = PageLook.Identity(realm: .random(), version: 1, app: nil, language: language)
        let plain = PageLook(identity, brand: Brand(), product: "Acme & <Sons>", catalogue: try TextCatalogue())
        for text in Self.hostile {
            let look = plain.filling(["client": text, "address": text, "count": "3", "host": "h"])
            for fault in [nil, "wrong_code"] {
                var values: PageValues = [
                    "tx": .value(text), "tries": .flag(true), "links": .flag(false), "isPhone": .flag(true),
                    "channels": .rows([["action": .value(text), "text": .text("code-voice")]]),
                ]
                if let fault { values.set("fault", .text("fault-\(fault)")) }
                let page = renderer.page(
                    "code", step: "code", error: fault, title: "code-title", values, look: look)
                var same: [String: Any] = [
                    "tx": text, "tries": true, "links": false, "isPhone": true,
                    "channels": [["action": text, "text": look.texts["code-voice"]]],
                ]
                if let fault { same["fault"] = look.texts["fault-\(fault)"] }
                let whole = try Self.whole("code", step: "code", error: fault, title: "code-title", same, look)
                #expect(String(decoding: page.body, as: UTF8.self) == whole)
            }
        }
    }

    @Test func `another version of the configuration is another page`() throws {
        let renderer = try PageRenderer { _ in AssetNames(base: "b", accent: nil) }
        let realm = UUIDValue.random()
        let pages = try ["Old", "New"].enumerated().map { version, product in
            let identity = PageLook.Identity(realm: realm, version: version, app: nil, language: .english)
            let look = PageLook(identity, brand: Brand(), product: product, catalogue: try TextCatalogue())
            return String(
                decoding: renderer.page("expired", step: "expired", title: "expired-title", look: look).body,
                as: UTF8.self)
        }
        #expect(pages[0].contains("Old") && pages[1].contains("New") && !pages[1].contains("Old"))
    }

    @Test func `pieces of a page are what stands between its slots`() {
        let marker = SlotMarker()
        let page = marker.text(3) + "a" + marker.text(12) + marker.text(3) + "b"
        let pieces = marker.pieces(of: Array(page.utf8))
        #expect(pieces.map(\.slot) == [0, 3, 12, 3])
        #expect(pieces.map { String(decoding: $0.bytes, as: UTF8.self) } == ["", "a", "", "b"])
        #expect(PageShell(page, marker).page { "<\($0)>" } == Array("&lt;3&gt;a&lt;12&gt;&lt;3&gt;b".utf8))
    }
}
