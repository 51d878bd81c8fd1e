import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Answers that do not belong here")
struct WrongAnswerTests {
    let world = World()

    /// The next refresh brings an ID token with these claims in place of the usual ones.
    private func refreshBrings(_ claims: [String: JSONValue]) async throws {
        world.time.pass(900)
        let tokens = try #require(await world.server.tokens("R", scope: "openid offline_access").object)
        let usual = try #require(tokens["id_token"]?.string.flatMap(IDToken.init)).claims
        let text = "e30." + Base64URL.encode(JSONValue.object(usual.merging(claims) { $1 }).data) + ".c2ln"
        await world.server.next(
            .answer(200, .object(tokens.merging(["id_token": .string(text)]) { $1 })), at: "/connect/token")
    }

    @Test(arguments: [["sid": "sid-other"], ["sub": "nina"], ["aud": "other-app"]] as [[String: JSONValue]])
    func `a refresh that is answered for another session changes nothing`(claims: [String: JSONValue]) async throws {
        let client = try await world.signedIn()
        let before = try await client.document().session
        try await refreshBrings(claims)
        // The same token again, and the right answer.
        _ = try await client.accessToken()
        #expect(try await client.document().session?.user?.sessionID == before?.user?.sessionID)
        #expect(try await client.document().session?.user?.id == "mike")
        #expect(await world.requests("/connect/token").map { $0.form["refresh_token"] } == ["R.1", "R.1"])
    }

    @Test(arguments: ["a\r\nHost: evil.example", "", "ä", "a\u{0}"])
    func `an access token that is no field value counts as no answer`(value: String) async throws {
        let json: JSONValue = ["access_token": .string(value), "token_type": "DPoP", "expires_in": 900]
        #expect(TokenAnswer(json, at: world.time.now) == nil)
    }

    @Test func `an answer that would not fit into the store is not stored, and nothing is lost`() async throws {
        let directory = try TemporaryDirectory()
        let client = try await world.signedIn(FileStore(directory: directory.url, name: "s"))
        let long = JSONValue.string(String(repeating: "x", count: 600_000))
        await world.server.next(.asked(["AuthSession": long]), .asked(["AuthSession": long]))
        _ = try await client.requestLink(to: mail)
        await expect(.unavailable(retryAfter: nil)) { try await client.requestLink(to: mail) }
        #expect(await client.state.isSignedIn)
        #expect(directory.text("s.damaged") == nil)
    }

    @Test(arguments: [302, 403]) func `a token is revoked when Postern has said so, and no one else`(
        status: Int
    ) async throws {
        let client = try await world.signedIn()
        await world.server.next(.answer(status, body: Data("<html>Log in</html>".utf8)), at: "/connect/revoke")
        try await client.signOut()
        #expect(try await client.document().toRevoke == ["R.1"])
        _ = try? await client.appInfo()
        await client.revoking?.value
        #expect(await world.server.revoked == ["R.1"])
        #expect(try await client.document().toRevoke == [])
    }

    @Test func `an API that refuses every token costs no memory`() async throws {
        let client = try await world.signedIn()
        let refusal = FakeServer.Fate.answer(401, nil, ["WWW-Authenticate": #"DPoP error="invalid_token""#])
        let url = try #require(URL(string: "https://api.example/orders"))
        for _ in 0..<20 {
            await world.server.next(refusal, refusal, at: "/orders")
            #expect(try await client.send(URLRequest(url: url)).1.statusCode == 401)
        }
        #expect(await client.refused.count <= 2)
    }

    @Test func `a request with a password in its URL is refused`() async throws {
        let client = try await world.signedIn()
        let url = try #require(URL(string: "https://me:secret@api.example/"))
        let error = await #expect(throws: PosternError.self) { try await client.authorized(URLRequest(url: url)) }
        guard case .misuse? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `a call that the server may hold is not given up before`() async throws {
        let client = try await world.signedIn()
        let items: JSONValue = ["Approvals": []]
        await world.server.next(.answer(200, items), .answer(401), at: "/connect/approvals")
        await #expect(throws: PosternError.self) { for try await _ in client.device.inbox {} }
        let waits = await world.requests("/connect/approvals").map(\.request.timeoutInterval)
        #expect(waits.count == 2 && waits[1] == 40)
    }
}
