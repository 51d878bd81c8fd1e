import Foundation
@testable import Grants
import Testing

@Suite("Names")
struct PersonNameTests {
    @Test(
        "a name is trimmed of white space by code point",
        arguments: [
            (" Ada \t", "Ada"), ("\u{a0}\u{3000}Ada\u{2003}", "Ada"), ("\u{2028}Ada\r\n", "Ada"),
            ("e\u{301}", "e\u{301}"),
            ("\u{1f469}\u{200d}\u{1f4bb}", "\u{1f469}\u{200d}\u{1f4bb}"), (" O'Brien ", "O'Brien"),
            ("\u{feff}Ada\u{200b}", "Ada"),
            (
                "\u{200f}\u{6af}\u{648}\u{634}\u{6cc}\u{200c}\u{645}\u{646}\u{200f}",
                "\u{6af}\u{648}\u{634}\u{6cc}\u{200c}\u{645}\u{646}"
            ),
            // A flag of a rainbow, a red heart, the flag of Wales: the last code point of each cannot be seen.
            ("\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}", "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}"),
            ("\u{2764}\u{fe0f}", "\u{2764}\u{fe0f}"), (Self.wales, Self.wales),
        ])
    func trimmed(_ typed: String, _ stored: String) {
        #expect(PersonName(typed)?.text.unicodeScalars.elementsEqual(stored.unicodeScalars) == true)
    }

    private static let wales = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}"

    @Test(
        "what is no name",
        arguments: [
            "", " ", "\u{a0}", " \u{301}x", "\u{301}", "\u{200d}", "a\tb", "a\u{85}b", "a\u{2028}b", "a\u{202e}b",
            "a\u{2066}b", "a\u{0}", "\u{200b}\u{2060}", "\u{feff}", "\u{2800}", "\u{e0041}", "\u{fe0f}", "\u{3164}",
            "\u{202a}Ada\u{202c}",
            String(repeating: "x", count: 101),
        ])
    func refused(_ typed: String) {
        #expect(PersonName(typed) == nil)
    }

    @Test func `a hundred code points are a name, of 256 bytes at most`() {
        #expect(PersonName(String(repeating: "x", count: 100)) != nil)
        #expect(PersonName(String(repeating: "\u{1f600}", count: 64)) != nil)
        #expect(PersonName(String(repeating: "\u{1f600}", count: 64) + "x") == nil)
        #expect(PersonName(String(repeating: "e\u{301}", count: 51)) == nil, "counted by code point")
    }

    /// The database trims and checks by the lists of `sql/functions/user/names.sql`.
    @Test func `the database has the same rule`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../sql/functions/user/names.sql")
        let sql = try String(contentsOf: file, encoding: .utf8)
        let list = try #require(sql.split(separator: "<@ '{").dropFirst().first?.split(separator: "}'").first)
        var marks: Set<UInt32> = []
        for range in list.split(separator: "]") {
            let bounds = range.drop { !$0.isNumber }.split(separator: ",").compactMap { UInt32($0) }
            if bounds.count == 2 { marks.formUnion(bounds[0]...bounds[1]) }
        }
        let own = (UInt32(0)...0x10FFFF).filter { Unicode.Scalar($0).map(NameText.isContinuation) ?? false }
        #expect(marks == Set(own), "the Unicode tables have changed: write the list anew")
        let around = try #require(
            sql.split(separator: "v_margin CONSTANT text := '[").dropFirst().first?.prefix { $0 != "]" })
        var margins: Set<UInt32> = []
        for match in around.matches(of: /\\[uU]([0-9a-f]+)(?:-\\[uU]([0-9a-f]+))?/) {
            let first = try #require(UInt32(match.1, radix: 16))
            margins.formUnion(first...(match.2.flatMap { UInt32($0, radix: 16) } ?? first))
        }
        let trimmed = (UInt32(0)...0x10FFFF).filter { Unicode.Scalar($0).map(NameText.isMargin) ?? false }
        #expect(margins == Set(trimmed), "the Unicode tables have changed: write the list anew")
    }
}

@Suite("One-time codes")
struct OneTimeCodeTests {
    @Test("a code has as many digits as the realm wants", arguments: 6...8)
    func digits(_ count: Int) {
        let codes = (0..<2000).map { _ in OneTimeCode.random(digits: count) }
        #expect(codes.allSatisfy { $0.utf8.count == count && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        for place in 0..<count {
            #expect(Set(codes.map { Array($0.utf8)[place] }).count == 10, "every digit at every place")
        }
    }
}
