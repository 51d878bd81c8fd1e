import Foundation
import Testing

@testable import PosternClient

@Suite("Waiting for a sign-in that ends elsewhere")
struct WaitTests {
    let world = World()
    private let isPending = FakeServer.Fate.refusal("authorization_pending")

    @Test func `a device without a keyboard shows a code and polls`() async throws {
        let client = try world.client()
        await world.server.next(
            .answer(
                200,
                [
                    "device_code": "device-secret", "user_code": "BCDF-GHJK", "interval": 7, "expires_in": 600,
                    "verification_uri": "https://id.example/device",
                    "verification_uri_complete": "https://id.example/device?user_code=BCDF-GHJK",
                ]), isPending)
        let request = try await client.requestDeviceSignIn()
        #expect(request.kind == .device && request.userCode == "BCDF-GHJK")
        #expect(request.verificationURL?.absoluteString == "https://id.example/device")
        #expect(request.completeVerificationURL?.query == "user_code=BCDF-GHJK")
        await world.opens()
        #expect(try await client.wait(for: request).id == "mike")
        #expect(world.time.sleeps == [7])
        #expect(
            await world.requests("/connect/token").map { $0.form["device_code"] } == ["device-secret", "device-secret"])
    }

    @Test func `callers share the polls, and one that is cancelled leaves them running`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        let (reached, until) = await world.server.hold(at: "/connect/token")
        let callers = (0..<3).map { _ in Task { try await client.wait(for: request) } }
        await reached.pass()
        callers[0].cancel()
        await expect(.cancelled) { try await callers[0].value }
        await until.open()
        // The server does not know the link any more.
        for caller in callers[1...] { await expect(.expired) { try await caller.value } }
        #expect(await world.server.count("/connect/token") == 1)
        #expect(try await client.pending.isEmpty)
    }

    @Test func `without a caller there is no poll`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        let (reached, until) = await world.server.hold(at: "/connect/token")
        let caller = Task { try await client.wait(for: request) }
        await reached.pass()
        caller.cancel()
        await expect(.cancelled) { try await caller.value }
        await until.open()
        #expect(try await client.pending == [.signIn(request)])
        await world.opens()
        #expect(try await client.wait(for: request).id == "mike")
        #expect(await world.server.count("/connect/token") == 2)
    }

    @Test func `a waiting caller gets the user of a link that is opened here`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        let (reached, until) = await world.server.hold(at: "/connect/token")
        let caller = Task { try await client.wait(for: request) }
        await reached.pass()
        await world.opens()
        let link = try #require(URL(string: "https://id.example/magic-login?userId=u&token=t"))
        #expect(try await client.open(link)?.id == "mike")
        await until.open()
        #expect(try await caller.value.id == "mike")
        #expect(await client.state.isSignedIn)
    }

    @Test func `polls go on while the server is away, to a minute after the end of the handle`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        for _ in 0..<200 { await world.server.next(.cut, at: "/connect/token") }
        let began = world.time.now
        await expect(.unavailable(retryAfter: nil)) { try await client.wait(for: request) }
        #expect((655...670).contains(world.time.now.timeIntervalSince(began)))
        // The server decided nothing, so the request is still there.
        #expect(try await client.document().pending.count == 1)
    }

    @Test func `after a sleep of the device the poll is made at once`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        await world.server.next(isPending, at: "/connect/token")
        let (reached, until) = await world.server.hold(at: "/connect/token")
        let caller = Task { try await client.wait(for: request) }
        await reached.pass()
        caller.cancel()
        await expect(.cancelled) { try await caller.value }
        world.time.pass(120)
        let slept = world.time.sleeps.count
        await world.opens()
        await until.open()
        #expect(try await client.wait(for: request).id == "mike")
        #expect(world.time.sleeps.count == slept)
    }

    @Test func `a second factor is sent with the next poll, not before the server wants one`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        await world.server.next(
            .refusal("invalid_grant", "Two-factor authentication is required; supply totp_code."), at: "/connect/token")
        await expect(.secondFactorNeeded) { try await client.wait(for: request) }
        await world.opens()
        #expect(try await client.wait(for: request, secondFactor: .totp("123456")).id == "mike")
        #expect(world.time.sleeps == [5])
        #expect(await world.requests("/connect/token")[1].form["totp_code"] == "123456")
    }

    @Test func `a link is redeemed once, and a lost answer leaves the request`() async throws {
        let client = try world.client()
        let request = try await world.link(client)
        await world.server.next(.cut, at: "/connect/token")
        let link = try #require(URL(string: "https://id.example/magic-login?userId=u&token=t"))
        await expect(.unavailable(retryAfter: nil)) { try await client.open(link) }
        #expect(await world.server.count("/connect/token") == 1)
        #expect(try await client.pending == [.signIn(request)])
    }

    @Test func `at most three requests are tried with a link, the newest first`() async throws {
        let client = try world.client()
        for number in 0..<5 {
            await world.server.next(.asked(["AuthSession": .string("handle-\(number)")]))
            _ = try await client.requestLink(to: mail)
        }
        let link = try #require(URL(string: "https://id.example/magic-login?userId=u&token=t"))
        await expect(.foreignLink) { try await client.open(link) }
        #expect(
            await world.requests("/connect/token").map { $0.form["auth_session"] } == [
                "handle-4", "handle-3", "handle-2",
            ])
    }
}
