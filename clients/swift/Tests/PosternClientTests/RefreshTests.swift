import Foundation
import Testing

@testable import PosternClient

@Suite("Refreshing")
struct RefreshTests {
    let world = World()

    @Test func `a hundred callers of one audience share one refresh`() async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await client.accessToken().value } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(tokens.count == 1)
        #expect(await world.server.count("/connect/token") == 1)
    }

    @Test func `three audiences are refreshed one after another`() async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        async let own = client.accessToken()
        async let account = client.accessToken(for: .account)
        async let api = client.accessToken(for: .api(scopes: ["orders.read"]))
        #expect(try await Set([own.value, account.value, api.value]).count == 3)
        #expect(await world.server.seen.compactMap { $0.form["refresh_token"] } == ["R.1", "R.2", "R.3"])
    }

    @Test func `two clients of one store refresh once`() async throws {
        let store = MemoryStore()
        let clients = [try await world.signedIn(store), try world.client(store)]
        world.time.pass(900)
        async let one = clients[0].accessToken().value
        async let other = clients[1].accessToken().value
        #expect(try await one == other)
        #expect(await world.server.count("/connect/token") == 1)
    }

    @Test(arguments: [(900.0, 59.0, true), (900, 61, false), (60, 19, true), (60, 21, false)])
    func `a token is used while a minute or a third of its life is left`(
        life: TimeInterval, left: TimeInterval, isRefreshed: Bool
    ) async throws {
        await world.server.setLife(life)
        let client = try await world.signedIn()
        world.time.pass(life - left)
        _ = try await client.accessToken()
        #expect(await world.server.count("/connect/token") == (isRefreshed ? 1 : 0))
    }

    @Test func `after a lost answer the same token is sent again, with a new proof`() async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        await world.server.next(.dropped, .cut)
        #expect(try await client.accessToken().value == "access-R-3")
        let seen = await world.server.seen
        #expect(seen.compactMap { $0.form["refresh_token"] } == ["R.1", "R.1", "R.1"])
        #expect(Set(seen.compactMap { $0.proof?["jti"]?.string }).count == 3)
        #expect(zip(world.time.sleeps, [0.5, 1]).allSatisfy { abs($0 - $1) <= $1 * 0.2 })
    }

    @Test func `without a network the call ends after twenty seconds, and the next one goes on`() async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        await world.server.next(.dropped, .cut, .cut, .cut, .cut, .cut)
        await expect(.unavailable(retryAfter: nil)) { try await client.accessToken() }
        #expect(world.time.sleeps.reduce(0, +) <= 20)
        world.time.pass(3 * 3600)
        await world.server.next(at: nil)
        #expect(try await client.accessToken().type == .dpop)
        #expect(await world.server.generation("R") == 2)
    }

    @Test(arguments: [429, 503])
    func `a longer pause of the server is kept, and one beyond the patience is told at once`(status: Int) async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        await world.server.next(.answer(status, nil, ["Retry-After": "3"]))
        _ = try await client.accessToken()
        #expect(world.time.sleeps == [3])
        world.time.pass(900)
        await world.server.next(.answer(status, nil, ["Retry-After": "60"]))
        await expect(.unavailable(retryAfter: 60)) { try await client.accessToken() }
        #expect(world.time.sleeps == [3])
    }

    @Test(arguments: [
        FakeServer.Fate.answer(502, body: Data("<html>".utf8)), .answer(200, [:]),
        .answer(200, body: Data(count: 2 << 20)), .answer(400, body: Data("<p>captive portal".utf8)),
    ])
    func `an answer that is none ends nothing`(fate: FakeServer.Fate) async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        await world.server.next(fate, fate, fate, fate, fate, fate, fate)
        await #expect(throws: PosternError.self) { try await client.accessToken() }
        #expect(await client.state.isSignedIn)
    }

    @Test(arguments: ["invalid_client", "unauthorized_client", "invalid_scope", "invalid_request"])
    func `another refusal erases nothing`(code: String) async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        world.time.pass(900)
        let before = try await store.read()
        let status = code == "invalid_client" ? 401 : 400
        await world.server.next(.answer(status, ["error": .string(code)]))
        await expect(.refused(code: code, description: nil, status: status)) { try await client.accessToken() }
        #expect(try await store.read() == before)
        _ = try await client.accessToken()
    }

    @Test func `invalid_grant of the newest token ends the session once, for every caller`() async throws {
        let client = try await world.signedIn()
        var states = client.states.makeAsyncIterator()
        #expect(await states.next()?.isSignedIn == true)
        await world.server.end("R")
        world.time.pass(900)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { await expect(.signedOut(.ended)) { try await client.accessToken() } }
            }
        }
        #expect(await states.next() == .signedOut(.ended))
        #expect(world.events.count("signed_out") == 1)
        #expect(try await client.document().hint != nil)
        #expect(await world.server.count("/connect/token") == 1)
    }

    @Test func `invalid_grant of an older token goes on with the newer one of the store`() async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        let other = try world.client(store)
        world.time.pass(900)
        let (reached, until) = await world.server.hold()
        await world.server.next(.answer(400, ["error": "invalid_grant"]))
        async let token = client.accessToken()
        await reached.pass()
        try await other.change { $0.session?.refreshToken = "R.2" }
        await world.server.end("nothing")
        await until.open()
        _ = try await token
        #expect(try await client.document().session?.refreshToken == "R.2")
    }

    @Test func `a token without a refresh token ends the session without a request`() async throws {
        let client = try await world.signedIn(scopes: ["openid"])
        world.time.pass(890)
        _ = try await client.accessToken()
        world.time.pass(11)
        await expect(.signedOut(.ended)) { try await client.accessToken() }
        #expect(await world.server.seen.isEmpty)
    }

    /// Another caller joins the refresh, or comes when it is over.
    @Test(arguments: [true, false])
    func `a cancelled caller leaves the refresh running, and its token is stored`(isJoined: Bool) async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        let (reached, until) = await world.server.hold()
        let caller = Task { try await client.accessToken() }
        await reached.pass()
        caller.cancel()
        await expect(.cancelled) { try await caller.value }
        let joined = isJoined ? Task { try await client.accessToken() } : nil
        await until.open()
        _ = try await joined?.value
        _ = try await client.accessToken()
        #expect(try await client.document().session?.refreshToken == "R.2")
        #expect(await world.server.count("/connect/token") == 1)
    }

    @Test func `each audience has its own token, refreshed once`() async throws {
        let client = try await world.signedIn()
        for _ in 0..<2 {
            _ = try await client.accountCall("GET", "/connect/account")
            _ = try await client.accessToken(for: .api(scopes: ["orders.read"]))
        }
        let seen = await world.server.seen
        #expect(seen.compactMap { $0.form["scope"] } == ["openid", "orders.read"])
        let account = seen.filter { $0.path == "/connect/account" }
        #expect(Set(account.map { $0.request.value(forHTTPHeaderField: "Authorization") }).count == 1)
    }

    @Test func `a sign-in with identity scopes only needs no second token for the account`() async throws {
        let client = try await world.signedIn(scopes: ["openid", "offline_access", "email"])
        _ = try await client.accountCall("GET", "/connect/account")
        #expect(await world.server.count("/connect/token") == 0)
    }
}
