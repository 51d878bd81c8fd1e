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
            "a@b.example\n",
            "a@b.example,c@d.example", "a@b.example;c@d.example", "\"x\" <a@b.example>", "<a@b.example>",
            "a@[127.0.0.1]",
            "a@127.0.0.1", "-a@b.example", ".a@b.example", "a.@b.example", "a..b@c.example", "a@-b.example",
            "a@b-.example",
            "a@b..example", "a@b.example.", "\"a\"@b.example", "a(c)@b.example", "mıke@b.example",
            "a\u{202e}@b.example",
            "a\u{0}@b.example", "a@b.exämple", "a\u{85}@b.example", "|id@b example",
        ])
    func refused(_ typed: String) {
        #expect(EmailAddress(typed) == nil)
    }

    @Test func `lengths are bounded`() {
        #expect(EmailAddress(String(repeating: "a", count: 64) + "@b.example") != nil)
        #expect(EmailAddress(String(repeating: "a", count: 65) + "@b.example") == nil)
        #expect(EmailAddress("a@" + String(repeating: "b.", count: 64) + "example") == nil)
        #expect(EmailAddress("a@" + String(repeating: "b", count: 64) + ".example") == nil)
    }
}
