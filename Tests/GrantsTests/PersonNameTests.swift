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
        ])
    func trimmed(_ typed: String, _ stored: String) {
        #expect(PersonName(typed)?.text.unicodeScalars.elementsEqual(stored.unicodeScalars) == true)
    }

    @Test(
        "what is no name",
        arguments: [
            "", " ", "\u{a0}", " \u{301}x", "\u{301}", "\u{200d}", "a\tb", "a\u{85}b", "a\u{2028}b", "a\u{202e}b",
            "a\u{2066}b", "a\u{0}",
            String(repeating: "x", count: 101),
        ])
    func refused(_ typed: String) {
        #expect(PersonName(typed) == nil)
    }

    @Test func `a hundred code points are a name, of any size`() {
        #expect(PersonName(String(repeating: "\u{1f600}", count: 100)) != nil)
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
        let own = (UInt32(0)...0x10FFFF).filter { Unicode.Scalar($0).map(PersonName.isCombiningMark) ?? false }
        #expect(marks == Set(own), "the Unicode tables have changed: write the list anew")
        let blanks = (UInt32(0)...0x10FFFF).filter { Unicode.Scalar($0)?.properties.isWhitespace == true }
        #expect(
            blanks == Array(9...13) + [0x20, 0x85, 0xA0, 0x1680] + Array(0x2000...0x200A) + [
                0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
            ])
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
