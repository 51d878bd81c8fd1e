import Foundation
import Testing
import Texts

@testable import Delivery

@Suite("Messages")
struct MailMessageTests {
    private func lines(_ message: MailMessage) -> [String] {
        String(decoding: message.serialized(), as: UTF8.self).components(separatedBy: "\r\n")
    }

    private func header(_ message: MailMessage) -> [String] {
        Array(lines(message).prefix { !$0.isEmpty })
    }

    private func message(name: String? = "Demo", subject: String = "Hi", text: String = "Hello") throws -> MailMessage {
        let from = Mailbox(name: name, address: try #require(MailAddress("no-reply@example.com")))
        let to = try #require(MailAddress("ada@example.org"))
        return MailMessage(
            id: "0b7e", from: from, to: to, subject: subject, text: text, html: "<p>\(text)</p>",
            queuedAt: 1_700_000_000)
    }

    @Test func `a plain message is exactly this`() throws {
        #expect(
            lines(try message()) == [
                "From: \"Demo\"", " <no-reply@example.com>", "To: ada@example.org", "Subject: Hi",
                "Date: Tue, 14 Nov 2023 22:13:20 +0000", "Message-ID: <0b7e@example.com>",
                "Auto-Submitted: auto-generated",
                "MIME-Version: 1.0", "Content-Type: multipart/alternative;", " boundary=\"=_postern_0b7e\"", "",
                "--=_postern_0b7e", "Content-Type: text/plain; charset=UTF-8",
                "Content-Transfer-Encoding: quoted-printable", "", "Hello",
                "--=_postern_0b7e", "Content-Type: text/html; charset=UTF-8",
                "Content-Transfer-Encoding: quoted-printable", "", "<p>Hello</p>",
                "--=_postern_0b7e--", "",
            ])
    }

    static let hostile = [
        "x\r\nBcc: evil@example.net", "x\nBcc: evil@example.net", "x\rBcc: evil", "x\r\n\r\nbody", "x\0y",
        "x\u{2028}Bcc: y",
        "x\u{2029}Bcc: y", "x\u{85}Bcc: y", "x\u{B}Bcc: y", "\" <evil@example.net>, \"", "\\\" <evil@example.net>",
        "x\\",
        "=?UTF-8?B?DQpCY2M6IGV2aWw=?=", "=?UTF-8?Q?=0D=0ABcc:_evil?=", "a <b@c>, d <e@f>", "名前\r\nBcc: x",
        "🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊🦊",
        String(repeating: "long ", count: 300), String(repeating: "ä", count: 300), "x\u{202E}y", "(comment) @ : ;", "",
    ]

    @Test("no name or subject makes another header", arguments: hostile)
    func headerInjection(_ text: String) throws {
        let harmless = header(try message())
        let message = try message(name: text, subject: text)
        let names = header(message).filter { !$0.hasPrefix(" ") }.map { $0.prefix { $0 != ":" } }
        #expect(names == harmless.filter { !$0.hasPrefix(" ") }.map { $0.prefix { $0 != ":" } })
        #expect(!message.serialized().contains { $0 > 0x7E || $0 == 0 })
        #expect(lines(message).allSatisfy { $0.utf8.count <= 76 && !$0.contains("\r") && !$0.contains("\n") })
        // What remains of the text comes back by decoding, and only as text.
        let subject = try #require(unfolded(message, "Subject"))
        #expect(decodedWords(subject) == DisplayText.clean(text, limit: 200))
        let from = try #require(unfolded(message, "From"))
        #expect(from.hasSuffix("<no-reply@example.com>") || from == "no-reply@example.com")
    }

    @Test("what Python's mail parser reads is what was written", arguments: hostile)
    func readByAnotherParser(_ text: String) throws {
        let message = try message(name: text, subject: text, text: "body: \(text)\n.\nFrom x\n\ttab \nend  ")
        let file = FileManager.default.temporaryDirectory.appending(path: "postern-mail-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(message.serialized()).write(to: file)
        let script = """
            import sys, email, email.policy
            m = email.message_from_bytes(open(sys.argv[1], 'rb').read(), policy=email.policy.default)
            assert not m.defects, m.defects
            assert m['From'].addresses[0].addr_spec == 'no-reply@example.com' and len(m['From'].addresses) == 1
            assert m['To'] == 'ada@example.org' and m['Auto-Submitted'] == 'auto-generated'
            assert len(m.keys()) == 8, m.keys()
            parts = list(m.iter_parts())
            assert [p.get_content_type() for p in parts] == ['text/plain', 'text/html'], parts
            assert not any(p.defects for p in parts)
            assert parts[0].get_content().splitlines()[-3:] == ['From x', '\\ttab ', 'end  '], parts[0].get_content()
            """
        try ChildProcess.run(["/usr/bin/python3", "-c", script, file.path])
    }

    @Test(
        "quoted-printable decodes to the text, in lines of 76 of 7-bit characters",
        arguments: [
            "", "a", "é", "=", " ", "\t", "a ", "a \nb\t\n", ".", "..\n.", String(repeating: "a", count: 76),
            String(repeating: "a", count: 77), String(repeating: "=", count: 60), String(repeating: "é", count: 500),
            String(repeating: "a ", count: 500), "a\r\n\r\nb\rc\n\nd", "\0\u{1}\u{7F}", "🦊 fox",
            String(repeating: "x", count: 5000),
        ])
    func quotedPrintable(_ text: String) {
        let encoded = QuotedPrintable.encode(text)
        #expect(encoded.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0x0D || $0 == 0x0A })
        let lines = String(decoding: encoded, as: UTF8.self).components(separatedBy: "\r\n")
        #expect(
            lines.allSatisfy { $0.utf8.count <= 76 && !$0.hasSuffix(" ") && !$0.contains("\n") && !$0.contains("\r") })
        let normal = text.replacingOccurrences(of: "\r\n", with: "\n").replacingOccurrences(of: "\r", with: "\n")
        let decoded = decodeQuotedPrintable(lines)
        #expect(decoded == normal || decoded == normal + "\n")
    }

    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 +0000"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 +0000"),
            (1_795_251_221, "Sat, 21 Nov 2026 08:53:41 +0000"), (-5, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (.nan, "Thu, 01 Jan 1970 00:00:00 +0000"), (.infinity, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (1e300, "Fri, 31 Dec 9999 23:59:59 +0000"),
        ] as [(Double, String)])
    func dates(_ seconds: Double, _ expected: String) {
        #expect(MailDate.rfc5322(secondsSinceEpoch: seconds) == expected)
    }

    @Test func `a copy is the same message, and no identifier breaks the header`() throws {
        #expect(try message().serialized() == message().serialized())
        let from = try #require(Mailbox(parsing: "a@example.com"))
        let message = MailMessage(
            id: "a>\r\nBcc: b\"", from: from, to: from.address, subject: "", text: "", html: "", queuedAt: 0)
        #expect(message.messageID == "<aBccb@example.com>")
    }

    private func unfolded(_ message: MailMessage, _ name: String) -> String? {
        let text = header(message).joined(separator: "\r\n").replacingOccurrences(of: "\r\n ", with: " ")
        return text.components(separatedBy: "\r\n").first { $0.hasPrefix(name + ":") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    private func decodedWords(_ text: String) -> String {
        guard text.hasPrefix("=?UTF-8?B?") else { return text }
        let words = text.split(separator: " ").map { String($0.dropFirst(10).dropLast(2)) }
        return words.map { String(decoding: Data(base64Encoded: $0) ?? Data(), as: UTF8.self) }.joined()
    }

    private func decodeQuotedPrintable(_ lines: [String]) -> String {
        var bytes: [UInt8] = []
        for (index, line) in lines.enumerated() {
            var units = Array(line.utf8)[...]
            var isSoft = false
            while let unit = units.popFirst() {
                guard unit == 0x3D else {
                    bytes.append(unit)
                    continue
                }
                if units.isEmpty {
                    isSoft = true
                } else {
                    bytes.append(UInt8(String(decoding: units.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                    units = units.dropFirst(2)
                }
            }
            if !isSoft && index < lines.count - 1 { bytes.append(0x0A) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
