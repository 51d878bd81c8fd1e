import Foundation
import Testing

@testable import PosternClient

@Suite("Sessions")
struct SessionTests {
    let world = World()

    @Test func `signing out without a network is done at once, and told with the next request`() async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        await world.server.next(.cut)
        try await client.signOut()
        #expect(await client.state == .signedOut(.byUser))
        #expect(await world.server.revoked.isEmpty)
        let later = try world.client(store)
        _ = try await later.post("/anything", [:])
        await later.revoking?.value
        #expect(await world.server.revoked == ["R.1"])
        #expect(try await later.document().toRevoke.isEmpty)
    }

    @Test func `signing out everywhere needs the server`() async throws {
        let client = try await world.signedIn(scopes: ["openid", "offline_access"])
        await world.server.next(.cut)
        await expect(.unavailable(retryAfter: nil)) { try await client.signOut(.everywhere) }
        #expect(await client.state.isSignedIn)
        try await client.signOut(.everywhere)
        #expect(await client.state == .signedOut(.byUser))
    }

    @Test func `forgetting this device erases the key and the hint`() async throws {
        let client = try await world.signedIn()
        try await client.signOut(.forgettingThisDevice)
        let document = try await client.document()
        #expect(document.key == nil && document.hint == nil)
        #expect(await world.server.revoked == ["R.1"])
    }

    @Test(arguments: [true, false])
    func `an answer that comes after the sign-out changes nothing of the next user`(isRefused: Bool) async throws {
        let client = try await world.signedIn()
        let states = Task { await client.states.prefix(3).reduce(into: [SessionState]()) { $0.append($1) } }
        _ = await client.states.first { _ in true }
        world.time.pass(900)
        if isRefused { await world.server.end("R") }
        let (reached, until) = await world.server.hold()
        let late = Task { try await client.accessToken() }
        await reached.pass()
        try await client.signOut()
        try await world.signIn(client, family: "S", user: "nora")
        await until.open()
        await expect(.signedOut(.byUser)) { try await late.value }
        #expect(try await client.document().session?.refreshToken == "S.1")
        await client.revoking?.value
        #expect(await world.server.revoked == (isRefused ? ["R.1"] : ["R.1", "R.2"]))
        #expect(
            await states.value.map { if case .signedIn(let user) = $0 { user.id } else { "" } } == ["mike", "", "nora"])
    }

    @Test func `a sign-in over a session revokes the former one`() async throws {
        let client = try await world.signedIn()
        try await world.signIn(client, family: "S", user: "nora")
        await client.revoking?.value
        #expect(await world.server.revoked == ["R.1"])
        #expect(try await client.document().session?.user?.id == "nora")
    }

    @Test func `the same sign-in answered twice is one session`() async throws {
        let client = try await world.signedIn()
        try await world.signIn(client, family: "R", user: "mike")
        await client.revoking?.value
        #expect(await world.server.revoked.isEmpty)
    }

    @Test func `another person than the one of the session is refused, and revoked`() async throws {
        let client = try await world.signedIn()
        await world.server.add("S", FakeServer.Family(user: "nora"))
        let answer = try #require(TokenAnswer(await world.server.tokens("S", scope: "openid"), at: world.time.now))
        await expect(.refused(code: "different_user", description: nil, status: 200)) {
            try await client.establish(answer, subject: "mike")
        }
        await client.revoking?.value
        #expect(await world.server.revoked == ["S.1"])
        #expect(try await client.document().session?.refreshToken == "R.1")
    }

    @Test(arguments: ["nonce", "client", "issuer"])
    func `an ID token of something else is refused`(what: String) async throws {
        let client = try world.client(
            clientID: what == "client" ? "other" : "app",
            origin: what == "issuer" ? "https://elsewhere.example" : FakeServer.origin)
        if what == "issuer" { await world.server.next(.answer(200, ["issuer": "https://elsewhere.example"])) }
        await world.server.add("S", FakeServer.Family(user: "nora"))
        let answer = try #require(TokenAnswer(await world.server.tokens("S", scope: "openid"), at: world.time.now))
        await expect(.refused(code: "invalid_response", description: nil, status: 200)) {
            try await client.establish(answer, nonce: what == "nonce" ? "n-1" : nil)
        }
        #expect(await client.state == .signedOut(.never))
    }

    @Test func `at the host of an App the issuer is the realm's`() async throws {
        let client = try world.client(origin: "https://shop.example")
        try await world.signIn(client, family: "R", user: "mike")
        try await world.signIn(client, family: "S", user: "mike")
        #expect(await world.server.count("/.well-known/openid-configuration") == 1)
    }

    @Test func `a token that an app kept by itself is adopted, and bound`() async throws {
        let client = try world.client()
        await world.server.add("R", FakeServer.Family(user: "mike"))
        await world.server.next(.dropped)
        let user = try await client.adopt(refreshToken: "R.1")
        #expect(user.id == "mike")
        let document = try await client.document()
        #expect(document.session?.refreshToken == "R.2")
        #expect(document.session?.boundKey == (try await client.key(for: .session, in: document)?.thumbprint))
        #expect(await world.server.seen.map { $0.form["scope"] } == ["openid", "openid"])
    }

    @Test(arguments: [
        ("invalid_grant", PosternError.signedOut(.ended)),
        ("invalid_scope", .refused(code: "invalid_scope", description: nil, status: 400)),
    ])
    func `a token that is refused is not adopted`(code: String, error: PosternError) async throws {
        let client = try world.client()
        await world.server.next(.answer(400, ["error": .string(code)]))
        await expect(error) { try await client.adopt(refreshToken: "R.1") }
        #expect(try await client.document().session == nil)
    }

    @Test(arguments: ["http://id.example", "https://id.example/path", "https://user@id.example", "ftp://id.example"])
    func `an origin is https, and nothing else`(origin: String) throws {
        #expect(throws: PosternError.self) { try world.client(origin: origin) }
    }

    @Test(arguments: [
        "http://localhost:8080", "http://acme.localhost:8080", "http://127.0.0.1:1", "http://[::1]:1",
        "https://ID.example:443/",
    ])
    func `an origin may be of this device`(origin: String) throws {
        _ = try world.client(origin: origin)
    }

    @Test func `scopes need openid`() {
        #expect(throws: PosternError.self) { try world.client(scopes: ["offline_access"]) }
    }

    @Test func `every reader of states sees every change, and one that does not read sees the last`() async throws {
        let client = try world.client()
        let idle = client.states
        let readers = (0..<9).map { _ in
            Task { await client.states.prefix(101).reduce(into: [SessionState]()) { $0.append($1) } }
        }
        while await client.readers < 10 { await Task.yield() }
        for number in 0..<50 {
            try await world.signIn(client, family: "F\(number)", user: "user\(number)")
            try await client.signOut()
            // A reader has room for sixty-four changes.
            if number % 20 == 19 { try await Task.sleep(for: .milliseconds(20)) }
        }
        let expected = (0..<50).flatMap { ["user\($0)", "byUser"] }
        for reader in readers {
            let seen = await reader.value.dropFirst().map { state in
                switch state {
                case .signedIn(let user): user.id
                case .signedOut(let reason): reason.rawValue
                case .locked: "locked"
                }
            }
            #expect(seen == expected)
        }
        var last: SessionState?
        for await state in idle.prefix(64) { last = state }
        #expect(last == .signedOut(.byUser))
    }
}
