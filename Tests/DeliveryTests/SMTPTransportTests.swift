import Foundation
import Testing

@testable import Delivery

@Suite("SMTP transport against real servers")
struct SMTPTransportTests {
    @Test func `a mail arrives once, with its envelope, its headers and its parts`() async throws {
        try await MailServer.wellBehaved { server in
            let transport = try transport(server)
            #expect(try await transport.send(sampleMail()) == .accepted)
            let mail = try await server.next("mail")
            #expect(mail.sender == "no-reply@mail.example.com")
            #expect(mail.recipients == ["ada@example.com"])
            #expect(mail.message == String(decoding: try sampleMail().message.serialized(), as: UTF8.self))
        }
    }

    static let dotted = [
        "one": ".", "several": ".\n.\n..\n...", "bare line feeds": "a\n.\nb", "bare returns": "a\r.\rb",
        "smuggling": "a\r\n.\r\nMAIL FROM:<x@evil.example>\r\nRCPT TO:<y@evil.example>\r\nDATA\r\n",
        "long line": String(repeating: "x", count: 5000),
        "more than a buffer": String(repeating: ".\r\n", count: 30_000),
    ]

    @Test("leading dots and a forged end of data are text", arguments: dotted.keys)
    func dots(_ name: String) async throws {
        let text = try #require(Self.dotted[name])
        try await MailServer.wellBehaved { server in
            let transport = try transport(server)
            let mail = try sampleMail(text: text)
            #expect(await transport.send(mail) == .accepted)
            #expect(try await transport.send(sampleMail(id: "second")) == .accepted)
            let received = try await server.next("mail")
            #expect(received.message == String(decoding: mail.message.serialized(), as: UTF8.self))
            #expect(received.recipients == ["ada@example.com"])
            #expect(try await server.next("mail").message.contains("<second@mail.example.com>"))
            #expect(await server.allEvents().filter { $0.event == "mail" }.count == 2)
        }
    }

    @Test func `a burst of mails uses one connection, and a rest closes it`() async throws {
        try await MailServer.wellBehaved { server in
            let transport = try transport(server)
            for number in 0..<5 {
                #expect(try await transport.send(sampleMail(id: "mail-\(number)")) == .accepted)
                #expect(try await server.next("mail").connection == 1)
            }
            await transport.rest()
            #expect(try await transport.send(sampleMail()) == .accepted)
            #expect(try await server.next("mail").connection == 2)
        }
    }

    @Test(
        "a kept connection that has gone away is replaced without losing the mail",
        arguments: [
            "close-after-mail", "bye-after-mail",
        ])
    func staleConnection(_ mode: String) async throws {
        try await MailServer.misbehaving(mode) { server in
            let transport = try transport(server)
            for _ in 0..<3 {
                #expect(try await transport.send(sampleMail()) == .accepted)
            }
            #expect(await server.allEvents().filter { $0.event == "message" }.map(\.connection) == [1, 2, 3])
        }
    }

    @Test(
        "SMTP refusals are temporary or permanent",
        arguments: [
            ("451", DeliveryOutcome.temporary(.reply(451))), ("421", .temporary(.reply(421))),
            ("452", .temporary(.reply(452))), ("550", .permanent(.reply(550))), ("553", .permanent(.reply(553))),
            ("530", .temporary(.authentication)),
        ])
    func refusals(_ code: String, _ outcome: DeliveryOutcome) async throws {
        try await MailServer.wellBehaved(["--rcpt", code, "--times", "1"]) { server in
            let transport = try transport(server)
            #expect(try await transport.send(sampleMail()) == outcome)
            #expect(try await transport.send(sampleMail()) == .accepted)
        }
    }

    @Test(
        "what a broken server means",
        arguments: [
            ("refuse-greeting", DeliveryOutcome.temporary(.reply(554))), ("mail-5xx", .temporary(.sender(550))),
            ("reject-data", .permanent(.reply(554))), ("drop-after-data", .inDoubt),
        ])
    func misbehaviour(_ mode: String, _ outcome: DeliveryOutcome) async throws {
        try await MailServer.misbehaving(mode) { server in
            let transport = try transport(server)
            #expect(try await transport.send(sampleMail()) == outcome)
        }
    }

    @Test(
        "a server that hangs is left after the limit",
        arguments: [
            ("hang-greeting", DeliveryOutcome.temporary(.timeout)), ("trickle", .temporary(.timeout)),
            ("hang-after-data", .inDoubt),
        ])
    func hanging(_ mode: String, _ outcome: DeliveryOutcome) async throws {
        try await MailServer.misbehaving(mode) { server in
            var limits = SMTPTransport.Limits()
            limits.connect = .seconds(1)
            limits.total = .seconds(1)
            let transport = SMTPTransport(
                url: try SMTPURL(parsing: "smtp://localhost:\(server.port)"), sessions: 1, limits: limits)
            #expect(try await transport.send(sampleMail()) == outcome)
        }
    }

    @Test("a rest says QUIT and waits for no answer", arguments: ["polite", "hang-at-quit"])
    func quit(_ mode: String) async throws {
        try await MailServer.misbehaving(mode) { server in
            let transport = SMTPTransport(url: try SMTPURL(parsing: "smtp://localhost:\(server.port)"), sessions: 1)
            #expect(await transport.send(try sampleMail()) == .accepted)
            _ = try await server.next("message")
            let start = ContinuousClock.now
            await transport.rest()
            #expect(start.duration(to: .now) < .seconds(20))
            #expect(try await server.next("line").text == "QUIT")
        }
    }

    @Test func `a cancelled task abandons a hanging server`() async throws {
        try await MailServer.misbehaving("hang-greeting") { server in
            var limits = SMTPTransport.Limits()
            limits.connect = .seconds(60)
            limits.total = .seconds(60)
            let transport = SMTPTransport(
                url: try SMTPURL(parsing: "smtp://localhost:\(server.port)"), sessions: 1, limits: limits)
            let mail = try sampleMail()
            let sending = Task { await transport.send(mail) }
            _ = try await server.next("connection")
            sending.cancel()
            #expect(await sending.value == .temporary(.cancelled))
        }
    }

    @Test func `nobody listening is a temporary failure`() async throws {
        let port = try await MailServer.wellBehaved { $0.port }
        let transport = SMTPTransport(url: try SMTPURL(parsing: "smtp://localhost:\(port)"), sessions: 1)
        #expect(try await transport.send(sampleMail()) == .temporary(.connection))
        #expect(await transport.probe() == .temporary(.connection))
    }

    @Test func `four mails at a time use four connections`() async throws {
        try await MailServer.misbehaving("hang-after-data") { server in
            var limits = SMTPTransport.Limits()
            limits.total = .seconds(2)
            let transport = SMTPTransport(
                url: try SMTPURL(parsing: "smtp://localhost:\(server.port)"), sessions: 4, limits: limits)
            let mail = try sampleMail()
            await withTaskGroup { group in
                for _ in 0..<4 { group.addTask { await transport.send(mail) } }
                for await outcome in group { #expect(outcome == .inDoubt) }
            }
            // All four were open before the first was given up.
            let events = await server.allEvents().map(\.event).filter { $0 == "message" || $0 == "closed" }
            #expect(events.prefix(4) == ["message", "message", "message", "message"])
        }
    }

    @Test("an address beyond ASCII needs a server that knows SMTPUTF8", arguments: [true, false])
    func internationalAddress(_ serverKnows: Bool) async throws {
        try await MailServer.wellBehaved(serverKnows ? ["--smtputf8"] : []) { server in
            let transport = try transport(server)
            let outcome = await transport.send(try sampleMail(to: "ünï@example.com"))
            if serverKnows {
                #expect(outcome == .accepted)
                let mail = try await server.next("mail")
                #expect(mail.recipients == ["ünï@example.com"])
                #expect(mail.message.contains("\r\nTo: ünï@example.com\r\n"))
            } else {
                #expect(outcome == .permanent(.reply(500)) || outcome == .permanent(.reply(501)), "\(outcome)")
            }
        }
    }
}
