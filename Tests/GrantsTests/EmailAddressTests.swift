import Grants
import Testing

@Suite("E-mail addresses")
struct EmailAddressTests {
    @Test(
        "ordinary addresses are accepted and folded in ASCII only",
        arguments: [
            ("ada@example.com", "ada@example.com"), ("Ada.Lovelace+x@Example.COM", "ada.lovelace+x@example.com"),
            (" ada@example.com\t", "ada@example.com"), ("o'hara@sub.example.co", "o'hara@sub.example.co"),
        ])
    func accepted(_ typed: String, _ key: String) throws {
        #expect(try #require(EmailAddress(typed)).key == key)
    }

    @Test(
        "what could reach a header, a shell, a second mailbox or a twin is refused",
        arguments: [
            "", "a", "@b.example", "a@", "a@b", "a@@b.example", "a b@c.example", "a@b.example\r\nBcc: x@y.example",
            "a@b.example\nx",
            "a@b.example,c@d.example", "a@b.example;c@d.example", "\"x\" <a@b.example>", "<a@b.example>",
            "a@[127.0.0.1]",
            "a@127.0.0.1", "-a@b.example", ".a@b.example", "a.@b.example", "a..b@c.example", "a@-b.example",
            "a@b-.example",
            "a@b..example", "a@b.example.", "\"a\"@b.example", "a(c)@b.example", "mıke@b.example",
            "a\u{202e}@b.example",
            "a\u{0}@b.example", "a@b\u{0}ü.example", "a\u{85}@b.example", "|id@b example", "ä@b.example",
            "a\u{200b}@b.example", "a@b ü.example", "a@-ü.example", "a@ü..example", "a@\u{1f4a9}\u{202e}.example",
            "a@ü#.example", "a@ü\u{ff03}.example", "a@ü_x.example", "a@ü\u{2100}.example", "a@\u{ff41}\u{ff03}.example",
            "a@ü\u{a0}x.example", "a@xn--\u{fc}.example", "a@bücher", "a@\u{fc}.1",
        ])
    func refused(_ typed: String) {
        #expect(EmailAddress(typed) == nil)
    }

    @Test(
        "what copying brings around an address does not count",
        arguments: [
            "\u{a0}ada@example.com\u{3000}", "\u{feff}ada@example.com\u{200b}", "\u{202a}ada@example.com\u{202c}",
            "\u{200e}ada@example.com\r\n", "\u{2060}ada@example.com\u{ad}",
        ])
    func pasted(_ typed: String) {
        #expect(EmailAddress(typed)?.text == "ada@example.com")
    }

    @Test(
        "a domain of any script is its A-labels",
        arguments: [
            ("ada@bücher.example", "ada@xn--bcher-kva.example"), ("Ada@BÜCHER.example", "Ada@xn--bcher-kva.example"),
            ("ada@bu\u{308}cher.example", "ada@xn--bcher-kva.example"), ("ada@faß.example", "ada@xn--fa-hia.example"),
            ("ada@例え。テスト", "ada@xn--r8jz45g.xn--zckzah"), ("ada@ｅｘａｍｐｌｅ．com", "ada@example.com"),
            ("ada@b\u{ad}ücher.example", "ada@xn--bcher-kva.example"),
            ("ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example"),
        ])
    func international(_ typed: String, _ text: String) {
        #expect(EmailAddress(typed)?.text == text)
        #expect(EmailAddress(typed)?.key == text.lowercased())
    }

    @Test func `an address in another script is bounded by its A-labels`() {
        let label = String(repeating: "ü", count: 40)
        #expect(EmailAddress("a@\(label).example") != nil)
        #expect(EmailAddress("a@" + String(repeating: label + ".", count: 6) + "example") == nil)
        #expect(EmailAddress("a@" + String(repeating: "ü", count: 64) + ".example") == nil)
        #expect(EmailAddress(String(repeating: " ", count: 1024) + "a@b.example") == nil)
    }

    @Test func `lengths are bounded`() {
        #expect(EmailAddress(String(repeating: "a", count: 64) + "@b.example") != nil)
        #expect(EmailAddress(String(repeating: "a", count: 65) + "@b.example") == nil)
        #expect(EmailAddress("a@" + String(repeating: "b.", count: 64) + "example") == nil)
        #expect(EmailAddress("a@" + String(repeating: "b", count: 64) + ".example") == nil)
    }
}
