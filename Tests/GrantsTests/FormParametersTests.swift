import Grants
import TestSupport
import Testing

@Suite("Form parameters")
struct FormParametersTests {
    private func parse(_ body: String) throws(FormParameters.ParseError) -> FormParameters {
        try FormParameters(parsing: Array(body.utf8))
    }

    @Test(
        "plus and percent escapes are decoded once",
        arguments: [
            ("scope=a+b", "a b"), ("scope=a%20b", "a b"), ("scope=a%2520b", "a%20b"), ("scope=%c3%a9", "é"),
            ("scope=a%2Bb", "a+b"),
        ])
    func decoding(_ body: String, _ expected: String) throws {
        #expect(try parse(body)["scope"] == expected)
    }

    @Test("a broken escape refuses the whole body", arguments: ["a=%", "a=%G1", "a=%u0041", "a=%0", "%=1", "a=1&b=%e"])
    func brokenEscapes(_ body: String) {
        #expect(throws: FormParameters.ParseError.brokenEscape) { try parse(body) }
    }

    @Test(
        "text that is not UTF-8 or holds NUL refuses the whole body",
        arguments: [
            "a=%00", "a=x%00y", "%00=1", "a=%ff%fe", "a=%c0%af", "a=%ed%a0%80", "a=%e2%28%a1",
        ])
    func invalidText(_ body: String) {
        #expect(throws: FormParameters.ParseError.invalidText) { try parse(body) }
    }

    @Test(
        "a repeated parameter is refused, with the same value too", arguments: ["a=1&a=2", "a=1&a=1", "a=&a=1", "a&a"])
    func repeated(_ body: String) {
        #expect(throws: FormParameters.ParseError.repeated) { try parse(body) }
    }

    @Test func `resource may repeat and keeps its order`() throws {
        #expect(try parse("resource=b&x=1&resource=a").resources == ["b", "a"])
    }

    @Test func `of a list that the caller names the first value counts`() throws {
        let form = try FormParameters(parsing: Array("l[]=b&x=1&l%5B%5D=a".utf8), lists: ["l[]"])
        #expect(form["l[]"] == "b")
        #expect(throws: FormParameters.ParseError.repeated) { try parse("l[]=b&l[]=a") }
    }

    @Test func `an empty value counts as absent`() throws {
        let form = try parse("a=&b&c=1&&=x")
        #expect(form["a"] == nil)
        #expect(form["b"] == nil)
        #expect(form["c"] == "1")
    }

    @Test func `brackets, dots and semicolons are plain characters`() throws {
        let form = try parse("a[b][c]=1;d=2&e.f=3")
        #expect(form["a[b][c]"] == "1;d=2")
        #expect(form["e.f"] == "3")
    }

    @Test func `more pairs than the bound are refused`() {
        let body = (0...FormParameters.maximumPairs).map { "p\($0)=1" }.joined(separator: "&")
        #expect(throws: FormParameters.ParseError.tooMany) { try parse(body) }
    }

    @Test func `no byte string makes the parser trap`() {
        var generator = SeededGenerator(seed: 7)
        let alphabet = Array("&=%+a1;\u{0}é".utf8)
        for _ in 0..<20_000 {
            let body = (0..<Int.random(in: 0..<24, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            _ = try? FormParameters(parsing: body)
        }
    }
}
