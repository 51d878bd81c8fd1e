import Foundation
import Testing

@testable import PosternClient

@Suite("Work for strangers")
struct WorkTests {
    let world = World()

    private func challenge(_ number: Int, most: Int) -> JSONValue {
        let hash = Digest.sha256(Data("salt?expires=1\(number)".utf8))
        let hex = hash.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return [
            "algorithm": "SHA-256", "challenge": .string(hex), "maxnumber": .number(Double(most)),
            "salt": "salt?expires=1", "signature": "signature",
        ]
    }

    @Test func `work is done once, and the request sent again with it`() async throws {
        let client = try world.client()
        await world.server.next(
            .answer(400, ["error": "challenge_required", "Challenge": challenge(4711, most: 300_000)]), .asked())
        _ = try await client.requestCode(to: mail)
        let sent = await world.requests("/api/account/native/otp/request")
        let answer = try #require(sent[1].json?["Challenge"]?.string.flatMap { Data(base64Encoded: $0) })
        #expect(JSONValue(answer)?["number"] == 4711 && JSONValue(answer)?["signature"] == "signature")
        #expect(sent[1].json?["Email"] == "mike@mail.example")
    }

    @Test(arguments: [6_000_000, 0, -1])
    func `too much work is refused before any is done`(most: Int) async throws {
        let client = try world.client()
        await world.server.next(.answer(400, ["error": "challenge_required", "Challenge": challenge(1, most: most)]))
        await expect(.refused(code: "challenge_required", description: nil, status: 400)) {
            try await client.requestCode(to: mail)
        }
        #expect(await world.server.seen.count == 1)
    }

    @Test func `work that does not end is given up with its caller`() async throws {
        let client = try world.client()
        // No number has this hash.
        var impossible = try #require(challenge(1, most: 5_000_000).object)
        impossible["challenge"] = .string(String(repeating: "0", count: 64))
        await world.server.next(.answer(400, ["error": "challenge_required", "Challenge": .object(impossible)]))
        let asking = Task { try await client.requestCode(to: mail) }
        while await world.server.seen.isEmpty { await Task.yield() }
        asking.cancel()
        await expect(.cancelled) { try await asking.value }
    }
}
