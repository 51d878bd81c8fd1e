import Foundation
import Persistence
import TestSupport
import Testing

@testable import Delivery

/// Signs with what it was asked for, so that a test can read it.
private struct PlainSigner: CallSigner {
    func token(realm: UUIDValue, url: String, message: UUIDValue, body: [UInt8]) async throws -> String {
        "\(url)|\(message)|\(body.count)"
    }
}

@Suite("Messages by providers")
struct ProviderSendingTests {
    private func calls(_ secrets: String? = nil) -> OutgoingCalls {
        OutgoingCalls(signer: PlainSigner(), secrets: SecretFiles(folder: secrets))
    }

    private func providing(
        _ paths: [String], by channel: Channel = .sms,
        _ body: @Sendable (OutboxFixture, MailServer) async throws -> Void
    ) async throws {
        try await OutboxFixture.run { outbox in
            try await MailServer.http { server in
                for (index, path) in paths.enumerated() {
                    try await outbox.call(
                        """
                        admin.put_channel('acme', '\(channel.rawValue)', 'p\(index)', 'webhook',
                                                 'http://127.0.0.1:\(server.port)/\(path)', priority => \(index))
                        """)
                }
                try await body(outbox, server)
            }
        }
    }

    private func requests(_ server: MailServer) async -> [MailServer.Event] {
        await server.allEvents().filter { $0.event == "request" }
    }

    @Test func `a webhook gets the envelope and a token for exactly this call`() async throws {
        try await providing(["200"]) { outbox, server in
            let id = try await outbox.queue(by: .sms, locale: "de")
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                let state = try await outbox.wait(for: id) { $0.state == "sent" }
                #expect(!state.hasPayload && state.attempts == 1)
            }
            let request = try #require(await requests(server).first)
            let text = try #require(request.text)
            let envelope = try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String])
            #expect(
                Set(envelope.keys) == [
                    "id", "type", "realm", "channel", "to", "kind", "text", "code", "purpose", "locale", "domain",
                    "expires_at",
                ], "members without a value are left out")
            #expect(envelope["id"] == "\(id)" && envelope["type"] == "message.send" && envelope["realm"] == "acme")
            #expect(envelope["to"] == "+4915112345678" && envelope["channel"] == "sms" && envelope["kind"] == "otp")
            #expect(envelope["code"] == "123456" && envelope["locale"] == "de" && envelope["purpose"] == "sign-in")
            #expect(envelope["text"]?.hasSuffix("\n@auth.example.com #123456") == true)
            #expect(try Date(try #require(envelope["expires_at"]), strategy: .iso8601) > .now)
            let url = "http://127.0.0.1:\(server.port)/200"
            #expect(request.headers?["authorization"] == "Bearer \(url)|\(id)|\(text.utf8.count)")
            #expect(request.headers?.keys.contains { $0.hasPrefix("webhook-") } == false)
            for line in outbox.logs.lines { #expect(!line.contains("123456") && !line.contains("4915112345678")) }
        }
    }

    @Test(
        "what a status means",
        arguments: [
            ("201", "sent", nil), ("204", "sent", nil), ("big", "sent", nil), ("400", "dead", "4xx"),
            ("404", "dead", "4xx"),
            ("410", "dead", "4xx"), ("422", "dead", "4xx"),
        ] as [(String, String, String?)])
    func final(_ path: String, _ state: String, _ error: String?) async throws {
        try await providing([path]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                let end = try await outbox.wait(for: id) { $0.state != "queued" }
                #expect(end.state == state && end.lastError == error && !end.hasPayload)
            }
            #expect(await requests(server).count == 1)
        }
    }

    @Test(
        "what passes",
        arguments: [
            ("401", "4xx", 0.5...1), ("408", "4xx", 0.5...1), ("409", "4xx", 0.5...1), ("500", "5xx", 0.5...1),
            ("redirect", "3xx", 0.5...1), ("retry", "4xx", 6...7),
        ] as [(String, String, ClosedRange<Double>)])
    func retried(_ path: String, _ error: String, _ pause: ClosedRange<Double>) async throws {
        try await providing(["\(path).200"]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                let waiting = try await outbox.wait(for: id) { $0.lastError != nil }
                #expect(waiting.state == "queued" && waiting.lastError == error)
                // However slow the machine is: the failure came after the row and before this look at it.
                #expect(waiting.secondsFromQueueToDue >= pause.lowerBound)
                #expect(waiting.secondsUntilDue <= pause.upperBound)
                try await outbox.endLease(of: id)
                _ = try await outbox.wait(for: id) { $0.state == "sent" }
            }
            let requests = await requests(server)
            #expect(requests.count == 2 && requests[0].text == requests[1].text, "the same id and text")
        }
    }

    @Test(arguments: ["close", "garbage"])
    func `what may have been taken is sent once more, with the same id, and then given up`(_ path: String)
        async throws
    {
        try await providing([path]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                try await outbox.wait(for: id) { $0.state == "queued" && $0.lastError == "in-doubt" }
                try await outbox.endLease(of: id)
                let end = try await outbox.wait(for: id) { $0.state == "dead" }
                #expect(end.lastError == "in-doubt" && end.attempts == 2)
            }
            let ids = await requests(server).compactMap { $0.headers?["authorization"]?.split(separator: "|")[1] }
            #expect(ids == ["\(id)", "\(id)"])
        }
    }

    @Test func `a doubt is not forgotten by a failure after it`() async throws {
        try await providing(["close.500.close"]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                try await outbox.wait(for: id) { $0.lastError == "in-doubt" }
                try await outbox.endLease(of: id)
                try await outbox.wait(for: id) { $0.lastError == "in-doubt, 5xx" }
                try await outbox.endLease(of: id)
                _ = try await outbox.wait(for: id) { $0.state == "dead" }
            }
            #expect(await requests(server).count == 3)
        }
    }

    @Test("the next provider takes over", arguments: [("500", 3), ("400", 2)])
    func takeover(_ first: String, _ count: Int) async throws {
        try await providing([first, "200"]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                _ = try await outbox.wait(for: id) { $0.state == "sent" }
            }
            let paths = await requests(server).compactMap(\.path)
            #expect(paths.count == count && paths.last == "/200" && paths.filter { $0 == "/200" }.count == 1)
        }
    }

    @Test func `a message that every provider refuses is dead`() async throws {
        try await providing(["400", "422"]) { outbox, server in
            let id = try await outbox.queue(by: .sms)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                _ = try await outbox.wait(for: id) { $0.state == "dead" }
            }
            #expect(await requests(server).count == 2)
        }
    }

    @Test func `what could not be sent in time is dead and expired, and is not sent afterwards`() async throws {
        try await providing(["500"]) { outbox, server in
            let id = try await outbox.queue(by: .sms, lifetime: 5)
            let later = try await outbox.queue(by: .sms, lifetime: 0)
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                let end = try await outbox.wait(for: id) { $0.state == "dead" }
                #expect(end.lastError == "expired")
                #expect(try await outbox.wait(for: later) { $0.state == "dead" }.attempts == 0)
            }
            #expect((1...2).contains(await requests(server).count))
        }
    }

    @Test func `a channel without a provider waits, other channels and mails go on`() async throws {
        try await providing(["200"], by: .voice) { outbox, server in
            let waiting = try await outbox.queue(by: .whatsapp)
            let call = try await outbox.queue(by: .voice)
            let mail = try await outbox.queue()
            try await outbox.sending(DevOutbox(), calls: calls()) { _ in
                try await outbox.wait(for: call) { $0.state == "sent" }
                try await outbox.wait(for: mail) { $0.state == "sent" }
                let still = try await outbox.wait(for: waiting) { $0.lastError == "no-provider" }
                #expect(still.state == "queued")
            }
        }
    }

    @Test func `a template is called with its credential, and waits while that is missing`() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "postern-secrets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.path
        try await OutboxFixture.run { outbox in
            try await MailServer.http { server in
                try await outbox.call(
                    """
                    admin.put_channel('acme', 'sms', 'vendor', 'http', 'http://localhost:\(server.port)/201',
                        '+15005550006', 'vendor', 'basic', 'form', '{"To":"{to}","From":"{from}","Body":"{code}"}')
                    """)
                let id = try await outbox.queue(by: .sms)
                try await outbox.sending(DevOutbox(), calls: calls(path)) { _ in
                    try await outbox.wait(for: id) { $0.lastError == "credential" }
                    #expect(
                        FileManager.default.createFile(
                            atPath: path + "/vendor", contents: Data("AC1:secret\n".utf8),
                            attributes: [.posixPermissions: 0o400]))
                    try await outbox.endLease(of: id)
                    try await outbox.wait(for: id) { $0.state == "sent" }
                }
                let request = try #require(await requests(server).first)
                #expect(request.text == "Body=123456&From=%2B15005550006&To=%2B4915112345678")
                #expect(request.headers?["authorization"] == "Basic QUMxOnNlY3JldA==")
                #expect(request.headers?["content-type"] == "application/x-www-form-urlencoded")
                for line in outbox.logs.lines { #expect(!line.contains("secret\"") && !line.contains("AC1")) }
            }
        }
    }

    @Test(
        "the hook decides",
        arguments: [
            ("allow", "deny", "sent"), ("deny", "allow", "dead"), ("text", "deny", "dead"), ("text", "allow", "sent"),
            ("500", "deny", "dead"), ("500", "allow", "sent"), ("redirect", "allow", "sent"), ("hang", "deny", "dead"),
            ("late", "deny", "sent"),
        ])
    func hook(_ path: String, _ onFailure: String, _ state: String) async throws {
        try await providing(["200"]) { outbox, server in
            try await outbox.call(
                """
                admin.set_pre_send_hook('acme', 'http://127.0.0.1:\(server.port)/\(path)?hook', '\(onFailure)')
                """)
            let id = try await outbox.queue(by: .sms, code: "987654")
            let mail = try await outbox.queue(.otp(code: "987654", minutes: 10))
            let mails = DevOutbox()
            try await outbox.sending(mails, calls: calls()) { _ in
                let end = try await outbox.wait(for: id) { $0.state != "queued" }
                #expect(end.state == state && end.lastError == (state == "dead" ? "denied" : nil))
                #expect(try await outbox.wait(for: mail) { $0.state != "queued" }.state == state)
            }
            #expect(mails.mails.count == (state == "sent" ? 1 : 0))
            let requests = await requests(server)
            let asked = requests.filter { $0.path?.hasSuffix("?hook") == true }
            #expect(asked.count == 2 && requests.count == (state == "sent" ? 3 : 2))
            for request in asked {
                let text = try #require(request.text)
                #expect(text.contains(#""type":"message.check""#) && !text.contains("987654"))
                #expect(!text.contains(#""text""#) && !text.contains(#""code""#))
            }
        }
    }

    @Test func `a mail goes from the realm's own sender`() async throws {
        try await OutboxFixture.run { outbox in
            try await outbox.call(
                "admin.set_branding('acme', mail_from => 'Acme Login <login@acme.example>', "
                    + "mail_reply_to => 'help@acme.example')")
            let id = try await outbox.queue()
            let gate = GatedTransport()
            gate.open()
            try await outbox.sending(gate) { _ in
                _ = try await outbox.wait(for: id) { $0.state == "sent" }
            }
            let message = try #require(gate.mails.first).message
            #expect(message.from.address.text == "login@acme.example" && message.from.name == "Acme Login")
            #expect(
                String(decoding: message.serialized(), as: UTF8.self).contains("\r\nReply-To: help@acme.example\r\n"))
        }
    }
}
