import Foundation
import Persistence
import Testing

@testable import Delivery

@Suite("Templates")
struct MailRendererTests {
    private let renderer: MailRenderer

    init() throws {
        renderer = try MailRenderer()
    }

    private func payload(
        _ content: MessagePayload.Content = .otp(code: "123456", minutes: 10)
    ) -> MessagePayload {
        MessagePayload(originHost: "auth.example.com", content: content)
    }

    private func render(
        _ content: MessagePayload.Content = .otp(code: "123456", minutes: 10), realm: String = "Acme"
    ) throws -> MailRenderer.Rendered {
        try renderer.render(payload(content), MailRenderer.Voice(name: realm))
    }

    @Test func `the mail of a code`() throws {
        let mail = try render()
        #expect(mail.subject == "123456 is your Acme verification code")
        let lines = mail.text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.first == "Your Acme verification code is:")
        #expect(lines.last == "@auth.example.com #123456")
        #expect(lines.contains("123456"))
        #expect(mail.text.contains("10 minutes") && mail.text.contains("Not you?"))
        #expect(mail.html.hasPrefix("<!DOCTYPE html>") && mail.html.hasSuffix("</html>"))
        for part in ["Acme", ">123456<", "10 minutes", "Not you?", "@auth.example.com #123456"] {
            #expect(mail.html.contains(part))
        }
        #expect(try render(.otp(code: "123456", minutes: 1)).text.contains("1 minute and"))
    }

    @Test(
        "the mail of a code names the client that asked, unless that is the realm's own name",
        arguments: [
            (nil, nil), ("", nil), ("\u{200B}", nil), ("Acme", nil), (" Acme\n", nil), ("Acme Wallet", "Acme Wallet"),
            ("Bad <b>App</b>\u{202E}\r\n#999999", "Bad <b>App</b> #999999"), ("{code} {{code}}", "{code} {{code}}"),
        ] as [(String?, String?)])
    func client(_ asked: String?, _ named: String?) throws {
        let mail = try renderer.render(payload(), MailRenderer.Voice(name: "Acme", client: asked))
        let lines = mail.text.split(separator: "\n").filter { $0.hasPrefix("Asked for by") }
        #expect(lines == (named.map { ["Asked for by \($0)."] } ?? []))
        #expect(mail.html.contains("Asked for by") == (named != nil) && !mail.html.contains("<b>"))
        #expect(mail.text.hasSuffix("\n@auth.example.com #123456") && !mail.text.contains("\n\n\n"))
        #expect(mail.subject == "123456 is your Acme verification code")
    }

    @Test func `the mail of a link shows where the link leads`() throws {
        let link = "https://auth.example.com/magic-login?userId=5c0f6a2e&token=a-b_c~d"
        let mail = try render(.magicLink(link: link, minutes: 15))
        #expect(mail.subject == "Sign in to Acme")
        #expect(mail.text.split(separator: "\n").contains { $0 == link })
        let escaped = link.replacingOccurrences(of: "&", with: "&amp;")
        // A button, and below it the same address as text.
        #expect(mail.html.components(separatedBy: "<a href=\"\(escaped)\"").count == 3)
        #expect(mail.html.contains(">Sign in</a>") && mail.html.contains("<span dir=\"ltr\">\(escaped)</span></a>"))
        #expect(mail.html.components(separatedBy: "href").count == 3)
        #expect(mail.html.contains("15 minutes") && mail.html.contains("Not you?"))
    }

    @Test
    func `a link's mail says who asked, when and from where, and says nothing of it when an older server queued it`()
        throws
    {
        let link = "https://acme.example/magic-login?userId=1&token=2"
        let origin = RequestOrigin(application: "Bad <b>App</b>\u{202E}", time: 1_795_356_239, source: "198.51.100.77")
        let mail = try render(.magicLink(link: link, minutes: 15, origin: origin))
        #expect(mail.text.contains("Asked for by Bad <b>App</b>, on 22 November 2026, 14:03 (UTC), from 198.51.x.x."))
        #expect(
            mail.html.contains(
                "Asked for by Bad &lt;b&gt;App&lt;/b&gt;, on 22 November 2026, 14:03 (UTC), from 198.51.x.x."))
        let older = try render(.magicLink(link: link, minutes: 15))
        for part in [older.text, older.html] {
            #expect(!part.contains("Asked") && !part.contains("{{") && part.contains("15 minutes"))
        }
    }

    @Test func `a mail has the look of the realm's pages`() throws {
        let link = "https://acme.example/magic-login?userId=1&token=2"
        func html(accent: String? = nil, logo: String? = nil) throws -> String {
            try renderer.render(
                payload(.magicLink(link: link, minutes: 15)),
                MailRenderer.Voice(name: "Acme", accent: accent, logo: logo)
            ).html
        }
        let plain = try html()
        #expect(plain.contains("background:#1f5fbf") && plain.contains("color:#ffffff") && !plain.contains("<img"))
        let branded = try html(accent: "#ffcc00", logo: "https://acme.example/brand/00ff")
        #expect(branded.contains("background:#ffcc00") && branded.contains("color:#000000"))
        #expect(branded.contains("<img src=\"https://acme.example/brand/00ff\" alt=\"Acme\""))
        #expect(try !html(accent: "red;}", logo: "javascript:x").contains("javascript"))
    }

    @Test(arguments: ["en", "de", "ar"])
    func `a code stands in the middle, in every direction of writing`(_ locale: String) throws {
        let mail = try renderer.render(payload(), MailRenderer.Voice(name: "Acme", locale: locale))
        #expect(mail.html.contains("text-align:center\"><span dir=\"ltr\""))
        #expect(!mail.html.contains("<p dir="))
    }

    @Test func `a notice of an added factor has a button that undoes it`() throws {
        let undo = "https://acme.example/undo/abc"
        let notice = MailNotice(.passkeyAdded)
        let mail = try renderer.render(notice, MailRenderer.Voice(name: "Acme"), undo: undo)
        #expect(mail.html.components(separatedBy: "<a href=\"\(undo)\"").count == 3)
        #expect(mail.html.contains(">Undo and end all sessions</a>") && mail.text.contains("\n\(undo)"))
    }

    @Test func `notices about passkeys name the passkey`() throws {
        let added = try render(.passkeyAdded(name: "Ada's phone"))
        #expect(added.subject == "A passkey was added to your Acme account")
        #expect(added.text.contains("Ada's phone"))
        #expect(added.html.contains("Ada&#39;s phone"))
        let removed = try render(.passkeyRemoved(name: "\r\n"))
        #expect(removed.subject == "A passkey was removed from your Acme account")
        #expect(removed.text.contains("\nPasskey\n"))
    }

    static let hostileNames = [
        "<script>alert(1)</script>", "\"><img src=https://evil.example/x>", "' onmouseover='x", "{{code}}",
        "{{{link}}}",
        "{{> layout.html}}", "&lt;b&gt;", "</title><script>", "a\r\n\r\n@evil.example #999999", "\u{202E}x",
        "<\u{301}b>",
        "\"\u{301} style=x", "&\u{301}amp;", "<!--", "]]>", "名前", "🦊", String(repeating: "<", count: 500), "", "\0",
    ]

    @Test("hostile names are text, in every template", arguments: hostileNames)
    func hostile(_ name: String) throws {
        let contents: [MessagePayload.Content] = [
            .otp(code: "123456", minutes: 10), .magicLink(link: "https://a.example/x?y=1&z=2", minutes: 15),
            .passkeyAdded(name: name), .passkeyRemoved(name: name),
        ]
        for content in contents {
            let plain = try render(clean(content))
            let mail = try render(content, realm: name)
            // The same markup as with a harmless name: not one more angle bracket, quotation mark or ampersand of
            // markup.
            for scalar in ["<", ">", "\""] as [Unicode.Scalar] {
                #expect(
                    mail.html.unicodeScalars.count { $0 == scalar } == plain.html.unicodeScalars.count { $0 == scalar })
            }
            #expect(mail.text.split(separator: "\n").count == plain.text.split(separator: "\n").count)
            // A name cannot pass for the code line, which is a line of its own.
            #expect(!mail.text.split(separator: "\n").contains { $0.hasPrefix("@evil") })
            #expect(!mail.subject.contains("\n") && !mail.subject.isEmpty)
            #expect(!mail.html.contains("<img") && !mail.html.contains("<script"))
            // No double escaping in text, no template language in values.
            #expect(!mail.text.contains("&lt;") || name.contains("&lt;"))
        }
    }

    private func clean(_ content: MessagePayload.Content) -> MessagePayload.Content {
        switch content {
        case .passkeyAdded: .passkeyAdded(name: "x")
        case .passkeyRemoved: .passkeyRemoved(name: "x")
        case .otp, .magicLink: content
        }
    }

    @Test func `a name with template language stays as it is`() throws {
        let mail = try render(realm: "{{code}}")
        #expect(mail.subject == "123456 is your {{code}} verification code")
    }

    @Test(
        "codes, links and hosts that are none are refused",
        arguments: [
            (.otp(code: "12 34", minutes: 1), .code), (.otp(code: "", minutes: 1), .code),
            (.otp(code: "1234\n", minutes: 1), .code),
            (.otp(code: "１２３４５６", minutes: 1), .code), (.magicLink(link: "javascript:alert(1)", minutes: 1), .link),
            (.magicLink(link: "http://example.com/", minutes: 1), .link),
            (.magicLink(link: "https://example.com/\"onclick=", minutes: 1), .link),
            (.magicLink(link: "https://example.com/ x", minutes: 1), .link),
            (.magicLink(link: "http://localhost.evil.example/", minutes: 1), .link),
            (.magicLink(link: "http://app.localhost.evil.example/", minutes: 1), .link),
        ] as [(MessagePayload.Content, MailRenderer.Failure)])
    func malformed(_ content: MessagePayload.Content, _ failure: MailRenderer.Failure) {
        #expect(throws: failure) { try render(content) }
    }

    @Test("the link of a development machine is accepted", arguments: ["localhost", "acme.localhost"])
    func developmentLink(_ host: String) throws {
        let link = "http://\(host):8080/magic-login?token=x"
        #expect(try render(.magicLink(link: link, minutes: 1)).text.contains(link))
    }

    @Test(arguments: ["", "a b", "https://a", "a\n", "a #1", "-a"])
    func badHost(_ host: String) {
        let payload = MessagePayload(originHost: host, content: .otp(code: "123456", minutes: 1))
        #expect(throws: MailRenderer.Failure.originHost) {
            try renderer.render(payload, MailRenderer.Voice(name: "Acme"))
        }
    }
}
