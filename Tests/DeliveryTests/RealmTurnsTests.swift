import Foundation
import Persistence
import Testing

@testable import Delivery

@Suite("Turns of realms at the mail server")
struct RealmTurnsTests {
    @Test func `a realm whose recipients are slow leaves senders to the others`() async throws {
        try await OutboxFixture.run { outbox in
            let quick = try await outbox.another("quick")
            for number in 0..<10 { try await outbox.queue(to: "slow\(number)@example.com", age: 10) }
            let gate = GatedTransport()
            let sender = try outbox.sender(gate, concurrency: 6)
            let running = Task { await sender.run() }
            // Without accounts these are registrations: one less than the share.
            await gate.waitForMails(3)
            let id = try await outbox.queue(to: "quick@example.com", realm: quick)
            sender.wake()
            while gate.mails.count < 4 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(gate.mails[3].message.to.text == "quick@example.com")
            let notice = try await outbox.queue(notice: "totp-added", to: "owner@example.com")
            sender.wake()
            while gate.mails.count < 5 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(gate.mails[4].message.to.text == "owner@example.com", "the share that registrations leave")
            #expect(gate.mostInHand == 5)
            gate.open()
            try await outbox.wait(for: id) { $0.state == "sent" }
            try await outbox.wait(for: notice) { $0.state == "sent" }
            running.cancel()
            await running.value
        }
    }

    @Test func `realms with much mail and realms with little leave in turn`() async throws {
        try await OutboxFixture.run { outbox in
            let others = [try await outbox.another("b"), try await outbox.another("c")]
            var ids: [UUIDValue] = []
            for number in 0..<30 { try await outbox.queue(to: "much\(number)@example.com", age: 100) }
            for (index, realm) in others.enumerated() {
                for number in 0..<3 {
                    ids.append(try await outbox.queue(to: "o\(index)\(number)@example.com", realm: realm))
                }
            }
            let mails = DevOutbox()
            let sender = try outbox.sender(mails, concurrency: 1)
            let running = Task { await sender.run() }
            for id in ids { try await outbox.wait(for: id) { $0.state == "sent" } }
            running.cancel()
            await running.value
            let order = mails.mails.reversed().map(\.to)
            let last = try #require(order.lastIndex { $0.hasPrefix("o") })
            #expect(last < 10, "three realms, three turns each: \(order.prefix(12))")
        }
    }

    @Test func `a realm whose own sender is refused holds up no other`() async throws {
        try await MailServer.misbehaving("refuse-example") { server in
            try await OutboxFixture.run { outbox in
                try await outbox.call("admin.set_branding('acme', mail_from => 'login@refused.example')")
                let quick = try await outbox.another("quick")
                // A pause would never end.
                let clock = ManualClock()
                let sender = try outbox.sender(try transport(server), clock: clock)
                let running = Task { await sender.run() }
                let refused = try await outbox.queue()
                let waiting = try await outbox.wait(for: refused) { $0.lastError != nil }
                #expect(waiting.state == "queued" && waiting.lastError == "5xx" && waiting.secondsUntilDue < 6)
                try await clock.waitForReads(3)
                let id = try await outbox.queue(to: "quick@example.com", realm: quick)
                sender.wake()
                try await outbox.wait(for: id) { $0.state == "sent" }
                try await outbox.call("admin.set_branding('acme', mail_from => '')")
                try await outbox.endLease(of: refused)
                try await outbox.wait(for: refused) { $0.state == "sent" }
                running.cancel()
                await running.value
            }
        }
    }

    @Test func `the server's own sender concerns all realms, also when a realm names it`() async throws {
        try await MailServer.misbehaving("mail-5xx") { server in
            try await OutboxFixture.run { outbox in
                try await outbox.call("admin.set_branding('acme', mail_from => 'Acme <no-reply@mail.example.com>')")
                let quick = try await outbox.another("quick")
                let clock = ManualClock()
                let sender = try outbox.sender(try transport(server), clock: clock)
                let running = Task { await sender.run() }
                let refused = try await outbox.queue()
                try await outbox.wait(for: refused) { $0.lastError == "5xx" }
                try await clock.waitForReads(3)
                let id = try await outbox.queue(to: "quick@example.com", realm: quick)
                sender.wake()
                try await clock.waitForReads(5)
                #expect(try await outbox.state(of: id).attempts == 0, "the pause lasts")
                clock.advance(by: .seconds(1))
                try await outbox.wait(for: id) { $0.lastError == "5xx" }
                running.cancel()
                await running.value
            }
        }
    }

    @Test func `an attempt has to end before its lease does, with time to record the outcome`() async throws {
        try await OutboxFixture.run { outbox in
            let gate = GatedTransport()
            let sender = try outbox.sender(gate)
            let running = Task { await sender.run() }
            let before = ContinuousClock.now
            let id = try await outbox.queue()
            await gate.waitForMails(1)
            let lease = try await outbox.state(of: id).secondsUntilDue
            let left = (try #require(gate.deadlines.first) - .now) / .seconds(1)
            #expect(left < lease - 10 && left > 60)
            #expect(try #require(gate.deadlines.first) <= before + .seconds(77))
            gate.open()
            try await outbox.wait(for: id) { $0.state == "sent" }
            running.cancel()
            await running.value
        }
    }

    @Test func `a second connection for a mail shares the time of the first`() async throws {
        try await MailServer.misbehaving("stall-after-mail") { server in
            var limits = SMTPTransport.Limits()
            limits.total = .seconds(8)
            let url = try SMTPURL(parsing: "smtp://localhost:\(server.port)?starttls=off")
            let transport = SMTPTransport(url: url, sessions: 1, limits: limits)
            #expect(try await transport.send(sampleMail(id: "first")) == .accepted)
            #expect(try await transport.send(sampleMail(id: "second")) == .temporary(.timeout))
            // Four seconds until the kept connection closes; then what is left of eight, not eight more.
            #expect(try #require(try await server.next("gone").seconds) < 6)
            #expect(await server.allEvents().filter { $0.event == "connection" }.count == 2)
        }
    }

    @Test func `an attempt is over at its deadline, and is not begun after it`() async throws {
        try await MailServer.misbehaving("hang-greeting") { server in
            let url = try SMTPURL(parsing: "smtp://localhost:\(server.port)?starttls=off")
            let transport = SMTPTransport(url: url, sessions: 1)
            let started = ContinuousClock.now
            #expect(try await transport.send(sampleMail(), before: .now + .seconds(1)) == .temporary(.timeout))
            #expect(ContinuousClock.now - started < .seconds(20))
            #expect(try await transport.send(sampleMail(), before: .now) == .temporary(.cancelled))
            #expect(await server.allEvents().filter { $0.event == "connection" }.count == 1)
        }
    }
}

@Suite("Unsealed notices")
struct MailNoticeTests {
    @Test(arguments: MailNotice.Template.allCases)
    func `every notice says what happened, in which realm, and what to do about it`(_ template: MailNotice.Template)
        throws
    {
        let mail = try MailRenderer().render(MailNotice(template), .init(name: "Acme & Sons"))
        #expect(mail.subject.contains("Acme & Sons"))
        // What an administrator did after an incident is asked of nobody.
        let question = template == .accountSecured ? "ask Acme" : "Not you?"
        #expect(mail.text.contains("Acme & Sons") && mail.text.contains(question))
        #expect(mail.html.contains("Acme &amp; Sons") && mail.html.contains(question))
        #expect(!mail.html.contains("href") && !mail.text.contains("{{"))
    }

    @Test func `a passkey is named by its product, whatever else stands in the detail`() throws {
        let detail = #"{"aaguid":"fdb141b2-5d84-443e-8a35-4698c205a502","passkey":"call +1 555","name":7}"#
        let notice = try #require(MailNotice(template: "passkey-added", detail: detail))
        let mail = try MailRenderer().render(notice, .init(name: "Acme"))
        #expect(mail.text.contains("\nKeePassXC\n") && !mail.text.contains("555"))
        #expect(MailNotice(template: "passkey-removed", detail: #"{"aaguid":"x"}"#)?.passkey == "Passkey")
        #expect(MailNotice(template: "passkey-removed", detail: "")?.passkey == "Passkey")
        #expect(MailNotice(template: "from-the-future", detail: "{}") == nil)
    }

    @Test func `a device is named with its client, when it was added, and from where`() throws {
        let detail =
            #"{"device":"Ada's <phone>","client":"Shop","at":1795701600,"source":"198.51.100.7","number":"+43···12"}"#
        for template in ["device-added", "phone-key-added"] {
            let notice = try #require(MailNotice(template: template, detail: detail))
            let mail = try MailRenderer().render(notice, .init(name: "Acme"))
            #expect(mail.text.contains("“Ada's <phone>”: added through Shop, on "), "\(mail.text)")
            #expect(mail.text.contains("2026") && mail.text.contains(", from 198.51.x.x."), "\(mail.text)")
            #expect(mail.html.contains("&lt;phone&gt;") && !mail.html.contains("<phone>"))
            let line = try #require(mail.html.split(separator: "\n").first { $0.contains("&lt;phone&gt;") })
            #expect(!line.contains("font-weight"), "what its holder wrote does not stand out")
        }
        let unnamed = try #require(MailNotice(template: "device-added", detail: #"{"client":"Shop","at":0}"#))
        #expect(try MailRenderer().render(unnamed, .init(name: "Acme")).text.contains("Device without a name: added"))
    }

    @Test(arguments: [
        ("Not you? Stop it now: https://evil.example/undo", false), ("evil.example", false),
        ("www.evil。example", false),
        ("a@evil", false), ("call +43 900 123 456", false), ("x.y.zz", false), ("Ada's phone", true),
        ("iPhone 15 Pro", true),
        ("Ada's 2. phone", true), ("Galaxy S23 (5.1)", true), ("Fairphone, v4.a", true),
    ])
    func `a name of a device stands in no mail when it could become a link`(name: String, isShown: Bool) throws {
        let detail = String(
            decoding: try JSONSerialization.data(withJSONObject: ["device": name, "client": "Shop", "at": 0]),
            as: UTF8.self)
        let notice = try #require(MailNotice(template: "device-added", detail: detail))
        let text = try MailRenderer().render(notice, .init(name: "Acme")).text
        #expect(
            text.contains("“\(name)”: added") == isShown && text.contains("Device without a name: added") != isShown,
            "\(text)")
    }

    @Test func `a notice is sent in the realm's name and forgotten`() async throws {
        try await OutboxFixture.run { outbox in
            let id = try await outbox.queue(notice: "totp-removed")
            let mails = DevOutbox()
            try await outbox.sending(mails) { _ in
                let state = try await outbox.wait(for: id) { $0.state == "sent" }
                #expect(!state.hasPayload)
            }
            #expect(mails.mails.first?.subject == "The authenticator app was removed from your Acme account")
        }
    }

    @Test func `a notice from the future waits for a sender that knows it`() async throws {
        try await OutboxFixture.run { outbox in
            let id = try await outbox.queue(notice: "from-the-future")
            try await outbox.sending(DevOutbox()) { _ in
                let waiting = try await outbox.wait(for: id) { $0.lastError != nil }
                #expect(waiting.state == "queued" && waiting.lastError == "payload")
            }
        }
    }
}
