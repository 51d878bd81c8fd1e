import Foundation
import Testing

@testable import PosternClient

@Suite("Trusted devices")
struct DeviceTests {
    let world = World()
    private let inboxPath = "/connect/approvals"
    private let empty = FakeServer.Fate.answer(200, ["Approvals": []])

    private func item(_ id: String, message: String? = nil) -> JSONValue {
        var members: [String: JSONValue] = [
            "Id": .string(id), "Event": "LOGIN", "ClientId": "app", "Challenge": "challenge-secret",
            "MatchRequired": true,
            "CreatedAt": "2026-11-22T20:00:00.000Z", "ExpiresAt": "2026-11-22T20:02:00Z", "Source": "192.0.2.1",
        ]
        members["BindingMessage"] = message.map(JSONValue.string)
        return .object(members)
    }

    private func shows(_ ids: String...) -> FakeServer.Fate {
        .answer(200, ["Approvals": .array(ids.map { item($0) })])
    }

    @Test func `an inbox without a reader makes no call`() async throws {
        let client = try world.client()
        let inbox = client.device.inbox
        _ = inbox
        #expect(await world.server.seen.isEmpty)
    }

    @Test func `the inbox tells what there is, then every change`() async throws {
        let client = try world.client()
        await world.server.next(empty, .cut, .answer(503), shows("a"), shows("a"), shows("a", "b"), at: inboxPath)
        var seen: [[String]] = []
        for try await inbox in client.device.inbox {
            seen.append(inbox.approvals.map(\.id))
            if seen.count == 3 { break }
        }
        #expect(seen == [[], ["a"], ["a", "b"]])
        let queries = await world.requests(inboxPath).map { $0.request.url?.query }
        #expect(queries.first == "wait=0" && queries.dropFirst().allSatisfy { $0 == "wait=25" })
        // An answer with something in it comes at once, so there is a pause before the next call.
        #expect(world.time.sleeps.filter { $0 == 3 }.count >= 2)
    }

    @Test func `readers share a call, and the inbox ends when the server refuses the device`() async throws {
        let client = try world.client()
        let (reached, until) = await world.server.hold(at: inboxPath)
        let readers = (0..<2).map { _ in
            Task { for try await _ in client.device.inbox {} }
        }
        await reached.pass()
        for _ in 0..<10 {
            await world.server.next(.answer(401, ["error": "invalid_dpop_proof"]), at: inboxPath)
        }
        await until.open()
        for reader in readers {
            await #expect(throws: PosternError.self) { try await reader.value }
        }
    }

    @Test func `without a reader nothing goes on, though the server is away`() async throws {
        let client = try world.client()
        let (reached, until) = (Gate(), Gate())
        for _ in 0..<3 { await world.server.next(.cut, at: inboxPath) }
        await world.server.next(.held(reached: reached, until: until), at: inboxPath)
        for _ in 0..<1000 { await world.server.next(.cut, at: inboxPath) }
        let reader = Task { for try await _ in client.device.inbox {} }
        await reached.pass()
        reader.cancel()
        _ = await reader.result
        await until.open()
        while await client.inbox.call != nil { await Task.yield() }
        #expect(await world.server.count(inboxPath) == 4)
        #expect(await client.inbox.call == nil)
    }

    @Test func `an approval that needs the number is not sent without it`() async throws {
        let client = try world.client()
        let approval = try #require(TrustedDevice.Approval(item("a")))
        for number in [nil, "", " - "] {
            await #expect(throws: PosternError.misuse("this approval needs the two digits that the other device shows"))
            {
                try await client.device.answer(approval, .approve(number: number))
            }
        }
        #expect(await world.server.seen.isEmpty)
    }

    @Test func `what is signed is what was shown`() async throws {
        let client = try world.client()
        await world.server.next(.answer(200, ["Approvals": [item("a", message: "Order 4711")]]), at: inboxPath)
        var approval: TrustedDevice.Approval?
        for try await inbox in client.device.inbox {
            approval = inbox.approvals.first
            break
        }
        await world.server.next(.cut, at: "/connect/approvals/a")
        try await client.device.answer(#require(approval), .approve(number: " ４２ "))
        let sent = await world.requests("/connect/approvals/a")
        #expect(sent.count == 2 && sent[0].json == sent[1].json && sent[0].proof == nil)
        let parts = try #require(sent[0].json?["Response"]?.string).split(separator: ".")
        let (header, claims) = (json(parts[0]), json(parts[1]))
        #expect(header?["typ"] == "postern-approval+jwt" && header?["alg"] == "ES256")
        #expect(claims?["aud"] == "https://id.example" && claims?["challenge"] == "challenge-secret")
        #expect(claims?["binding_message"] == "Order 4711" && claims?["match_number"] == "42")
        #expect(claims?["decision"] == "approve" && claims?["event"] == "LOGIN")
    }

    @Test func `a device that has no key makes no call`() async throws {
        let client = try world.client()
        #expect(try await client.device.info() == nil)
        try await client.device.remove()
        #expect(await world.server.seen.isEmpty)
    }

    @Test(arguments: [
        "", "postern-device:", "postern-device:id.example:", "other:id.example:pdo_x", "postern-device:id.example:x",
    ])
    func `a picture that is no offer is refused without a call`(text: String) async throws {
        let client = try await world.signedIn()
        await expect(.refused(code: "invalid_offer", description: nil, status: 0)) {
            try await client.device.adopt(text) { _ in "" }
        }
        #expect(await world.server.seen.isEmpty)
    }

    @Test(arguments: [
        ("4821", "4821"), (" 48-21 ", "4821"), ("４８２１", "4821"), ("٤٨٢١", "4821"), ("48x1", "48x1"), ("", ""),
    ])
    func `digits of every script are read, and nothing is guessed`(typed: String, read: String) {
        #expect(Digits.read(typed) == read)
    }

    private func json(_ part: Substring) -> JSONValue? { Base64URL.decode(String(part)).flatMap { JSONValue($0) } }
}
