import Foundation
import Testing

@testable import PosternClient

@Suite("Possession of a number")
struct PossessionTests {
    let world = World()
    private let path = "/connect/possession/"

    private func opened(_ client: PosternClient) async throws -> PossessionCheck {
        await world.server.next(
            .answer(
                200,
                [
                    "authId": "check", "state": "open", "phoneNumberNeeded": true, "channels": ["otp", "fax"],
                    "sendsLeft": 3, "expiresIn": 900,
                ]), at: path + "open")
        let payload = Base64URL.encode(Data(#"{"nonce":"token-nonce"}"#.utf8))
        return try await client.possession("e30.\(payload).c2ln")
    }

    @Test func `the nonce of the token saves the first question`() async throws {
        let client = try world.client()
        let status = await (try opened(client)).status
        #expect(status.step == .open && status.needsNumber && status.channels == [.otp])
        let sent = await world.requests(path + "open")
        #expect(sent[0].proof?["nonce"] == "token-nonce" && sent[0].proof?["ath"] != nil)
        #expect(sent[0].request.value(forHTTPHeaderField: "Authorization")?.hasPrefix("DPoP e30.") == true)
    }

    @Test func `a refusal tells where the check stands`() async throws {
        let client = try world.client()
        let check = try await opened(client)
        await world.server.next(
            .answer(400, ["error": "resend_too_soon", "message": "Wait.", "resendAfter": 10]), at: path + "send")
        await expect(.refused(code: "resend_too_soon", description: "Wait.", status: 400)) {
            try await check.send(.otp, to: "+43664")
        }
        #expect(await check.status.resendAt == world.time.now.addingTimeInterval(10))
        await world.server.next(.answer(400, ["error": "otp_invalid", "triesLeft": 2]), at: path + "check")
        await #expect(throws: PosternError.self) { try await check.check("123456") }
        #expect(await check.status.triesLeft == 2)
        await world.server.next(.answer(400, ["error": "possession_failed"]), at: path + "check")
        await #expect(throws: PosternError.self) { try await check.check("123456") }
        #expect(await check.status.step == .failed)
        #expect(try await check.wait().step == .failed)
    }

    @Test func `a lost check is sent again, a lost message is not`() async throws {
        let client = try world.client()
        let check = try await opened(client)
        await world.server.next(.cut, at: path + "send")
        await expect(.unavailable(retryAfter: nil)) { try await check.send(.otp) }
        #expect(await world.server.count(path + "send") == 1)
        await world.server.next(.cut, .answer(200, ["state": "passed"]), at: path + "check")
        #expect(try await check.check("123456").step == .passed)
        #expect(await world.server.count(path + "check") == 2)
        await expect(.misuse("the code is empty")) { try await check.check(" ") }
    }

    @Test func `waiting goes on over lost answers, to the end of the check`() async throws {
        let client = try world.client()
        let check = try await opened(client)
        await world.server.next(
            .answer(200, ["state": "sent"]), .cut, .answer(200, ["state": "linked"]), .answer(200, ["state": "passed"]),
            at: path + "result")
        #expect(try await check.wait().step == .passed)
        #expect(await world.server.count(path + "result") == 4)
        let other = try await opened(client)
        for _ in 0..<500 { await world.server.next(.cut, at: path + "result") }
        await expect(.unavailable(retryAfter: nil)) { try await other.wait() }
    }

    @Test func `a server that does not hold the question is not asked without end`() async throws {
        let client = try world.client()
        let check = try await opened(client)
        for _ in 0..<10_000 { await world.server.next(.answer(200, ["state": "sent"]), at: path + "result") }
        await expect(.unavailable(retryAfter: nil)) { try await check.wait() }
        #expect(await world.server.count(path + "result") < 200)
        let other = try await opened(client)
        await world.server.recovers()
        await world.server.next(
            .answer(429, nil, ["Retry-After": "30"]), .answer(200, ["state": "passed"]), at: path + "result")
        #expect(try await other.wait().step == .passed)
        #expect(world.time.sleeps.last == 30)
    }

    @Test func `a check that has passed signs in, with the key of the device`() async throws {
        let client = try world.client(key: .none)
        let check = try await opened(client)
        await world.server.next(.cut, at: "/connect/token")
        await world.opens()
        #expect(try await client.signIn(with: check).id == "mike")
        #expect(await check.status.step == .redeemed)
        let sent = await world.requests("/connect/token")
        #expect(sent.count == 2 && sent.allSatisfy { $0.proof != nil })
        #expect(try await client.document().session?.boundKey != nil)
    }
}
