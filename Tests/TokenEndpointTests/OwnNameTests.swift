@testable import TokenEndpoint
import Testing

@Suite("Names of people")
struct OwnNameTests {
    @Test(arguments: [
        (" Ada ", "Ada"), ("\u{2003}Ada\u{A0}", "Ada"), ("\u{3000}家族\u{3000}", "家族"), ("O’Neill", "O’Neill"),
        ("e\u{301}", "e\u{301}"),
        ("👩\u{200D}👧", "👩\u{200D}👧"),
    ])
    func `a name is kept without the white space around it`(given: String, kept: String) {
        #expect(OwnName.trimmed(given)?.unicodeScalars.elementsEqual(kept.unicodeScalars) == true)
    }

    @Test(arguments: [
        "", " ", "\u{301}x", " \u{301}x", "a\nb", "a\u{0}b", "a\u{85}b", "a\u{2028}b", "a\u{2029}b", "a\u{202E}b",
        "a\u{2066}b",
    ])
    func `what is no name is refused`(given: String) {
        #expect(OwnName.trimmed(given) == nil)
    }

    @Test func `a hundred code points are the most`() {
        #expect(OwnName.trimmed(String(repeating: "é", count: 100)) != nil)
        #expect(OwnName.trimmed(String(repeating: "x", count: 101)) == nil)
        #expect(OwnName.trimmed("x" + String(repeating: "\u{301}", count: 100)) == nil)
    }
}
