import Foundation
import Logging
import Persistence
import ServiceLifecycle
import TestSupport
import Testing

@testable import Delivery

@Suite("Outbox against PostgreSQL and SMTP")
struct OutboxSenderTests {
    @Test func `a queued mail is rendered, sent and forgotten`() async throws {
        try await MailServer.wellBehaved { server in
            try await OutboxFixture.run { outbox in
                let id = try await outbox.queue()
                try await outbox.sending(try transport(server)) { sender in
                    sender.wake()
                    let mail = try await server.next("mail")
                    #expect(mail.recipients == ["ada@example.com"])
                    #expect(mail.sender == "no-reply@mail.example.com")
                    #expect(mail.message.contains("Message-ID: <\(id)@mail.example.com>\r\n"))
                    #expect(mail.message.contains("From: \"Acme\"\r\n <no-reply@mail.example.com>\r\n"))
                    #expect(mail.message.contains("Subject: 123456 is your Acme verification code\r\n"))
                    #expect(mail.message.contains("\r\n@auth.example.com #123456\r\n"))
                    let state = try await outbox.wait(for: id) { $0.state == "sent" }
                    #expect(!state.hasPayload && state.attempts == 1 && state.lastError == nil)
                }
            }
        }
    }

    @Test func `mails of other nodes are found without a wake-up, each once, by any number of senders`() async throws {
        try await OutboxFixture.run { outbox in
            let (first, second) = (DevOutbox(), DevOutbox())
            var ids: [UUIDValue] = []
            for number in 0..<40 { ids.append(try await outbox.queue(to: "user\(number)@example.com")) }
            try await outbox.sending(first) { _ in
                try await outbox.sending(second) { _ in
                    for id in ids { try await outbox.wait(for: id) { $0.state == "sent" } }
                }
            }
            let recipients = (first.mails + second.mails).map(\.to)
            #expect(recipients.count == 40 && Set(recipients).count == 40)
            #expect(first.mails.allSatisfy { $0.code == "123456" })
        }
    }

    @Test func `a crash between acceptance and record makes one extra copy, with the same Message-ID`()
        async throws
    {
        try await MailServer.wellBehaved { server in
            try await OutboxFixture.run { outbox in
                let id = try await outbox.queue()
                // The first sender never hears of the acceptance, like one that died at that moment.
                let crash = GatedTransport(inFrontOf: try transport(server))
                let dead = try outbox.sender(crash, concurrency: 1)
                let dying = Task { await dead.run() }
                let original = try await server.next("mail")
                #expect(try await outbox.state(of: id).state == "queued")

                try await outbox.sending(try transport(server)) { _ in
                    try await outbox.endLease(of: id)
                    let copy = try await server.next("mail")
                    #expect(copy.message == original.message)
                    #expect(copy.message.contains("Message-ID: <\(id)@"))
                    let state = try await outbox.wait(for: id) { $0.state == "sent" }
                    #expect(state.attempts == 2)
                }
                crash.open()
                dying.cancel()
                await dying.value
                #expect(await server.allEvents().filter { $0.event == "mail" }.count == 2)
            }
        }
    }

    @Test func `an answer that stays away twice ends the mail, so that there is one extra copy at most`() async throws {
        try await MailServer.misbehaving("drop-after-data") { server in
            try await OutboxFixture.run { outbox in
                let id = try await outbox.queue()
                try await outbox.sending(try transport(server)) { _ in
                    let doubtful = try await outbox.wait(for: id) { $0.lastError != nil }
                    #expect(doubtful.state == "queued" && doubtful.lastError == "in-doubt")
                    #expect(doubtful.secondsUntilDue > 30)
                    try await outbox.shift(id, by: 61)
                    let dead = try await outbox.wait(for: id) { $0.state == "dead" }
                    #expect(dead.attempts == 2 && dead.lastError == "in-doubt" && !dead.hasPayload)
                }
                #expect(await server.allEvents().filter { $0.event == "message" }.count == 2)
            }
        }
    }

    @Test func `greylisting delays the mail`() async throws {
        try await MailServer.wellBehaved(["--rcpt", "451", "--times", "2"]) { server in
            try await OutboxFixture.run { outbox in
                let id = try await outbox.queue()
                try await outbox.sending(try transport(server)) { _ in
                    let first = try await outbox.wait(for: id) { $0.lastError != nil }
                    #expect(first.state == "queued" && first.lastError == "4xx")
                    #expect(first.secondsUntilDue <= 5)
                    try await outbox.shift(id, by: 5)
                    let second = try await outbox.wait(for: id) { $0.attempts == 2 && $0.secondsUntilDue < 20 }
                    #expect(second.secondsUntilDue <= 10)
                    try await outbox.shift(id, by: 10)
                    try await outbox.wait(for: id) { $0.state == "sent" && $0.attempts == 3 }
                }
            }
        }
    }

    @Test func `a refused recipient ends the mail at once and stands in no log`() async throws {
        try await MailServer.wellBehaved(["--rcpt", "550"]) { server in
            try await OutboxFixture.run { outbox in
                let link = "https://auth.example.com/magic-login?token=s3cr3t"
                let ids = [
                    try await outbox.queue(), try await outbox.queue(.magicLink(link: link, minutes: 15)),
                ]
                try await outbox.sending(try transport(server)) { _ in
                    for id in ids {
                        let state = try await outbox.wait(for: id) { $0.state == "dead" }
                        #expect(state.lastError == "5xx" && !state.hasPayload)
                    }
                }
                #expect(outbox.logs.lines.contains { $0.contains("5xx") && $0.contains(ids[0].description) })
                for line in outbox.logs.lines {
                    // Random ids may hold any hexadecimal word.
                    let text = line.replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, with: "")
                    for secret in ["ada", "example.com", "123456", "s3cr3t"] { #expect(!text.contains(secret)) }
                }
            }
        }
    }

    @Test func `after 24 hours without success a mail is dead`() async throws {
        try await MailServer.wellBehaved(["--rcpt", "450"]) { server in
            try await OutboxFixture.run { outbox in
                let id = try await outbox.queue(.passkeyAdded(name: "Phone"), age: 86_100, attempts: 7)
                try await outbox.sending(try transport(server)) { _ in
                    let state = try await outbox.wait(for: id) { $0.state == "dead" }
                    #expect(state.lastError == "4xx" && !state.hasPayload)
                }
            }
        }
    }

    @Test func `a code that is no longer valid is not sent, a notice of the same age is`() async throws {
        try await OutboxFixture.run { outbox in
            let code = try await outbox.queue(age: 600)
            let notice = try await outbox.queue(.passkeyRemoved(name: "Phone"), age: 80_000)
            let mails = DevOutbox()
            try await outbox.sending(mails) { _ in
                let state = try await outbox.wait(for: code) { $0.state == "dead" }
                #expect(state.lastError == "expired")
                try await outbox.wait(for: notice) { $0.state == "sent" }
            }
            #expect(mails.mails.map(\.subject) == ["A passkey was removed from your Acme account"])
        }
    }

    @Test func `what cannot be opened waits, what cannot be addressed is dead, and neither stops the rest`()
        async throws
    {
        try await OutboxFixture.run { outbox in
            let tampered = try await outbox.queue(tampered: true)
            let unaddressable = try await outbox.queue(to: "-oQ@example.com")
            let good = try await outbox.queue()
            try await outbox.sending(DevOutbox()) { _ in
                try await outbox.wait(for: good) { $0.state == "sent" }
                let waiting = try await outbox.wait(for: tampered) { $0.lastError != nil }
                #expect(waiting.state == "queued" && waiting.lastError == "payload")
                let dead = try await outbox.wait(for: unaddressable) { $0.state == "dead" }
                #expect(dead.lastError == "recipient")
            }
        }
    }

    @Test func `graceful shutdown finishes the mail in hand and takes no other`() async throws {
        try await OutboxFixture.run { outbox in
            let inHand = try await outbox.queue(age: 10)
            let later = try await outbox.queue()
            let gate = GatedTransport()
            let sender = try outbox.sender(gate, concurrency: 1)
            let group = ServiceGroup(
                configuration: .init(services: [.init(service: sender)], logger: outbox.logs.logger))
            let running = Task { try await group.run() }
            await gate.waitForMails(1)
            await group.triggerGracefulShutdown()
            #expect(try await outbox.state(of: inHand).state == "queued")
            gate.open()
            try await running.value
            #expect(try await outbox.state(of: inHand).state == "sent")
            let left = try await outbox.state(of: later)
            #expect(left.state == "queued" && left.attempts == 0)
        }
    }

    @Test func `no more mails are in hand than allowed, the oldest first`() async throws {
        try await OutboxFixture.run { outbox in
            var ids: [UUIDValue] = []
            for number in 0..<12 {
                ids.append(try await outbox.queue(to: "u\(number)@example.com", age: 100 - Double(number)))
            }
            let gate = GatedTransport()
            let sender = try outbox.sender(gate, concurrency: 3)
            let running = Task { await sender.run() }
            await gate.waitForMails(3)
            for _ in 0..<20 { sender.wake() }
            gate.open()
            for id in ids { try await outbox.wait(for: id) { $0.state == "sent" } }
            running.cancel()
            await running.value
            #expect(gate.mostInHand == 3)
            #expect(
                Set(gate.mails.prefix(3).map(\.message.to.text)) == [
                    "u0@example.com", "u1@example.com", "u2@example.com",
                ])
        }
    }

    @Test func `what is over the rate stays in the queue for anybody, and leaves in the next second`()
        async throws
    {
        try await OutboxFixture.run { outbox in
            var ids: [UUIDValue] = []
            for number in 0..<3 { ids.append(try await outbox.queue(to: "stale\(number)@example.com", age: 700)) }
            for number in 0..<12 {
                ids.append(try await outbox.queue(to: "u\(number)@example.com", age: 100 - Double(number)))
            }
            let (clock, mails) = (ManualClock(), DevOutbox())
            let sender = try outbox.sender(mails, concurrency: 2, mailsPerSecond: 5, clock: clock)
            let running = Task { await sender.run() }
            for second in 1...3 {
                // The clock stands still, so nothing more can leave however often the sender looks.
                let sent = min(second * 5, 12)
                for id in ids[..<(sent + 3)] { try await outbox.wait(for: id) { $0.state != "queued" } }
                sender.wake()
                try await clock.waitForReads(3)
                #expect(mails.mails.count == sent)
                for id in ids[(sent + 3)...] {
                    let left = try await outbox.state(of: id)
                    #expect(left.state == "queued" && left.attempts == 0 && left.secondsUntilDue <= 0, "on lease")
                }
                if second == 1 {
                    clock.advance(by: .milliseconds(999))
                    try await clock.waitForReads(3)
                    #expect(mails.mails.count == sent)
                    clock.advance(by: .milliseconds(1))
                } else {
                    clock.advance(by: .seconds(1))
                }
            }
            running.cancel()
            await running.value
            #expect(mails.mails.allSatisfy { !$0.to.hasPrefix("stale") })
            for id in ids[..<3] { #expect(try await outbox.state(of: id).lastError == "expired") }
        }
    }

    @Test func `what is over the rate of one node another node sends`() async throws {
        try await OutboxFixture.run { outbox in
            var ids: [UUIDValue] = []
            for number in 0..<9 { ids.append(try await outbox.queue(to: "u\(number)@example.com")) }
            let (first, second, clock) = (DevOutbox(), DevOutbox(), ManualClock())
            let slow = try outbox.sender(first, mailsPerSecond: 2, clock: clock)
            let running = Task { await slow.run() }
            while first.mails.count < 2 { try await Task.sleep(for: .milliseconds(5)) }
            try await clock.waitForReads(3)
            try await outbox.sending(second) { _ in
                for id in ids { try await outbox.wait(for: id) { $0.state == "sent" } }
            }
            running.cancel()
            await running.value
            #expect(first.mails.count == 2 && second.mails.count == 7)
        }
    }

    @Test func `a mailbox that is not there three times in a row is sent nothing more`() async throws {
        try await MailServer.wellBehaved(["--rcpt", "550 5.1.1", "--times", "3"]) { server in
            try await OutboxFixture.run { outbox in
                try await outbox.sending(try transport(server)) { _ in
                    for number in 1...3 {
                        let id = try await outbox.queue(to: number == 2 ? "ADA@example.com" : "ada@example.com")
                        try await outbox.wait(for: id) { $0.state == "dead" && $0.lastError == "5xx" }
                    }
                    let dropped = try await outbox.queue()
                    let state = try await outbox.wait(for: dropped) { $0.state == "dead" }
                    #expect(state.lastError == "suppressed" && state.attempts == 0 && !state.hasPayload)
                    let other = try await outbox.queue(to: "bob@example.com")
                    try await outbox.wait(for: other) { $0.state == "sent" }
                }
                let arrived = await server.allEvents().filter { $0.event == "mail" }
                #expect(arrived.map(\.recipients) == [["bob@example.com"]])
                for line in outbox.logs.lines { #expect(!line.contains("example.com")) }
            }
        }
    }

    @Test func `a policy is no missing mailbox: nobody is suppressed for it`() async throws {
        try await MailServer.wellBehaved(["--rcpt", "550 5.7.1", "--times", "4"]) { server in
            try await OutboxFixture.run { outbox in
                try await outbox.sending(try transport(server)) { _ in
                    for _ in 0..<4 {
                        let id = try await outbox.queue()
                        try await outbox.wait(for: id) { $0.state == "dead" && $0.lastError == "5xx" }
                    }
                    let id = try await outbox.queue()
                    try await outbox.wait(for: id) { $0.state == "sent" }
                }
            }
        }
    }

    @Test func `without a mail server few mails are tried, and all leave when it is back`() async throws {
        let port = try await MailServer.wellBehaved { $0.port }
        try await OutboxFixture.run { outbox in
            var ids: [UUIDValue] = []
            for _ in 0..<20 { ids.append(try await outbox.queue()) }
            let nobody = SMTPTransport(url: try SMTPURL(parsing: "smtp://localhost:\(port)"))
            try await outbox.sending(nobody) { _ in
                let deadline = ContinuousClock.now + .seconds(5)
                while outbox.logs.lines.count(where: { $0.contains("connection") }) < 4, ContinuousClock.now < deadline
                {
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            var tried = 0
            for id in ids { tried += try await outbox.state(of: id).attempts }
            #expect(tried <= 8)
            try await outbox.sending(DevOutbox()) { _ in
                for id in ids { try await outbox.endLease(of: id) }
                for id in ids { try await outbox.wait(for: id) { $0.state == "sent" } }
            }
        }
    }

    @Test func `an acceptance is recorded although the database goes away in between`() async throws {
        try await OutboxFixture.run(onOwnCluster: true) { outbox in
            let id = try await outbox.queue()
            let gate = GatedTransport()
            try await outbox.sending(gate) { _ in
                await gate.waitForMails(1)
                try await outbox.postgres.stop(.immediate)
                gate.open()
                try await outbox.postgres.start()
                let state = try await outbox.wait(for: id) { $0.state == "sent" }
                #expect(state.attempts == 1)
            }
            #expect(gate.mails.count == 1)
            try await outbox.postgres.stop(.immediate)
        }
    }
}
