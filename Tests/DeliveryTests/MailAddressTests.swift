import Testing
import Texts

@testable import Delivery

@Suite("Addresses and names")
struct MailAddressTests {
    @Test(arguments: [
        "a@b", "ada@example.com", "ada.lovelace+x@mail.example.com", "o'brien@example.com", "ada@localhost",
        "x_y=z/w!#$%&*?^`{}~@example.com", "ünï@exämple.com", "a|b@example.com",
    ])
    func accepted(_ text: String) {
        #expect(MailAddress(text)?.text == text)
    }

    @Test(
        "what could become another header, recipient, command or option is refused",
        arguments: [
            "", "@", "a", "a@", "@b", "a b@c", "a@b c", " a@b", "a@b ", "a@b\n", "a@b\r\nRCPT TO:<x@y>", "a\r\n@b",
            "a\0@b",
            "a@b\0", "-oQ/tmp@b", "-a@b", "|sh@b", "a@-b", "a@b-", "a@b..c", "a@.b", "a@b.", ".a@b", "a.@b", "a..b@c",
            "\"a b\"@c", "<a@b>", "a@b>", "a@b> SIZE=1", "a,b@c", "a;b@c", "a:b@c", "a(c)@b", "a\\b@c", "a@[127.0.0.1]",
            "a@b@c d", "a@b%0d%0a", "a\u{85}@b", "a\u{2028}@b", "a\u{200B}@b", "a\u{202E}@b", "a@b\u{A0}", "a\u{7F}@b",
            "a@b_c", "a\t@b", String(repeating: "a", count: 65) + "@b", "a@" + String(repeating: "b", count: 64),
            "a@" + Array(repeating: "bbbbbbbbb", count: 26).joined(separator: "."),
        ])
    func refused(_ text: String) {
        #expect(MailAddress(text) == nil)
    }

    @Test(
        arguments: [
            ("a@example.com", nil, "a@example.com"), ("<a@example.com>", nil, "a@example.com"),
            ("Ada Lovelace <a@example.com>", "Ada Lovelace", "a@example.com"),
            ("\"Lovelace, Ada\" <a@example.com>", "Lovelace, Ada", "a@example.com"),
            (" Démo<a@example.com>", "Démo", "a@example.com"), ("\" \" <a@example.com>", nil, "a@example.com"),
        ] as [(String, String?, String)])
    func mailboxes(_ text: String, _ name: String?, _ address: String) throws {
        let mailbox = try #require(Mailbox(parsing: text))
        #expect(mailbox.name == name)
        #expect(mailbox.address.text == address)
    }

    @Test(arguments: ["", "Ada", "Ada <>", "Ada <a@b> x", "Ada <a@b\r\nBcc: c@d>", "<a@b", "a@b>", "a@b, c@d"])
    func noMailbox(_ text: String) {
        #expect(Mailbox(parsing: text) == nil)
    }

    @Test(arguments: [
        ("Acme", "Acme"), ("  Acme \t Corp\r\nBcc: x@y ", "Acme Corp Bcc: x@y"), ("A\u{2028}B\u{85}C\0D", "A B C D"),
        ("\u{202E}evil\u{2066}\u{200B}\u{FEFF}", "evil"), ("👩\u{200D}🚀", "👩\u{200D}🚀"), ("\r\n", ""),
        (String(repeating: "x", count: 500), String(repeating: "x", count: 80)), ("é\u{A0}é", "é é"),
        ("a" + String(repeating: "\u{301}", count: 5000), "a" + String(repeating: "\u{301}", count: 79)),
    ])
    func cleaned(_ text: String, _ expected: String) {
        #expect(DisplayText.clean(text).unicodeScalars.elementsEqual(expected.unicodeScalars))
    }
}
