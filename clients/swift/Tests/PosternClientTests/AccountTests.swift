import Foundation
import Testing

@testable import PosternClient

@Suite("The account")
struct AccountTests {
    let world = World()

    private func signedIn() async throws -> PosternClient {
        try await world.signedIn(scopes: ["openid", "offline_access"])
    }

    @Test func `members and claims of a newer server can be read`() async throws {
        let client = try await signedIn()
        await world.server.next(
            .answer(
                200,
                ["Sub": "mike", "CreatedAt": "2026-11-20T09:12:44.903Z", "Shoe": ["Size": 43], "Email": .null]),
            at: "/connect/account")
        let details = try await client.account.load()
        #expect(details.members["Shoe"]?["Size"] == 43 && details.email == nil && !details.emailVerified)
        guard case .signedIn(let user) = await client.state else {
            Issue.record("signed out")
            return
        }
        #expect(user.claims["sid"] == "sid-R" && user.claims["email"] == "mike@mail.example")
    }

    @Test func `what a device asks for is shown, and answered with the same code`() async throws {
        let client = try await signedIn()
        await world.server.next(
            .answer(
                200,
                [
                    "ClientId": "tv", "ClientName": "Television",
                    "Scope": [["Name": "openid"], ["Name": "email"], [:]],
                    "Source": "192.0.2.0", "SameNetwork": true, "RequestedAt": "2026-11-20T09:12:44Z", "ExpiresIn": 300,
                ]), at: "/connect/device/bcdf ghjk")
        let request = try await client.account.deviceRequest("bcdf ghjk")
        #expect(request.clientID == "tv" && request.clientName == "Television" && request.sameNetwork)
        #expect(request.scopes == ["openid", "email"] && request.expiresAt == world.time.now.addingTimeInterval(300))
        try await client.account.decide(request, .approve())
        try await client.account.decide(request, .report)
        let sent = await world.requests("/connect/device").map(\.json)
        #expect(
            sent == [
                ["UserCode": "bcdf ghjk", "Decision": "approve"], ["UserCode": "bcdf ghjk", "Decision": "report"],
            ])
    }

    @Test func `identities are listed and removed`() async throws {
        let client = try await signedIn()
        await world.server.next(
            .answer(
                200, [["Id": "i", "Provider": "apple", "CreatedAt": "2026-11-20T09:12:44Z", "Email": "a@mail.example"]]),
            .answer(200, [["Id": "i"]]), at: "/connect/identities")
        let identities = try await client.account.identities()
        #expect(identities.map(\.providerName) == ["apple"] && identities[0].email == "a@mail.example")
        // What cannot be read is no answer.
        await expect(.unavailable(retryAfter: nil)) { try await client.account.identities() }
        try await client.account.remove(identity: "i")
        #expect(await world.server.seen.last?.request.httpMethod == "DELETE")
        #expect(await world.server.seen.last?.path == "/connect/identities/i")
    }

    @Test func `signals of passkeys pass as the server gives them`() async throws {
        let client = try await signedIn()
        let bytes = Data(#"{ "rpId":"id.example" }"#.utf8)
        await world.server.next(.answer(200, body: bytes), at: "/connect/passkey/signals")
        #expect(try await client.account.passkeySignals() == bytes)
    }

    @Test(arguments: ["", ".", ".."])
    func `an id that is none does not reach the whole list`(id: String) async throws {
        let client = try await signedIn()
        let account = client.account
        let calls: [() async throws -> Void] = [
            { try await account.end(session: id) }, { try await account.remove(passkey: id) },
            { _ = try await account.rename(passkey: id, to: "x") }, { try await account.remove(identifier: id) },
            { _ = try await account.makePrimary(identifier: id) }, { try await account.remove(identity: id) },
            { try await account.revoke(consentOf: id) }, { _ = try await account.deviceRequest(id) },
        ]
        for call in calls { await expect(.misuse("an id is empty, or no id"), call) }
        #expect(await world.server.seen.isEmpty)
    }

    @Test func `a refused access token is refreshed once, and the answer after it counts`() async throws {
        let client = try await signedIn()
        let refusal = FakeServer.Fate.answer(401, nil, ["WWW-Authenticate": "DPoP error=\"invalid_token\""])
        await world.server.next(refusal, .answer(200, []), refusal, refusal, at: "/connect/consents")
        #expect(try await client.account.consents().isEmpty)
        await expect(.refused(code: "401", description: nil, status: 401)) { try await client.account.consents() }
        #expect(await world.server.count("/connect/consents") == 4)
        #expect(await client.state.isSignedIn)
    }

    @Test func `an account that is deleted leaves nothing that vouches for this device`() async throws {
        let client = try await signedIn()
        try await client.account.delete()
        #expect(await client.state == .signedOut(.byUser))
        #expect(try await client.document().hint == nil)
    }
}
