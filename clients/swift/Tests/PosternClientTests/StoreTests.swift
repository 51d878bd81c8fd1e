import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("The document and its store")
struct StoreTests {
    let world = World()

    @Test func `a document of a newer version is neither read nor changed`() async throws {
        let bytes = Data(#"{"v":99,"session":"of tomorrow"}"#.utf8)
        let store = FaultyStore(bytes)
        let client = try world.client(store)
        #expect(await client.state == .locked)
        await expect(.unavailable(retryAfter: nil)) { try await client.accessToken() }
        await expect(.unavailable(retryAfter: nil)) { try await client.signOut() }
        #expect(await store.data == bytes)
    }

    @Test func `members that the library does not know are kept`() async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        try await client.change {
            $0.members["later"] = ["x": [1, "two"]]
            $0.session?.members["later"] = true
            $0.key?.members["later"] = 2
        }
        world.time.pass(900)
        _ = try await client.accessToken()
        let document = try await client.document()
        #expect(document.session?.refreshToken == "R.2")
        #expect(document.members["later"] == ["x": [1, "two"]])
        #expect(document.session?.members["later"] == true && document.key?.members["later"] == 2)
    }

    @Test(arguments: [
        #"{"v":1,"session":{"id":"#, "\u{0}\u{1}", "{}", #"{"v":"1"}"#, #"{"v":1,"key":7}"#, #"{"v":1,"session":{}}"#,
    ])
    func `a damaged document is set aside once`(text: String) async throws {
        let directory = try TemporaryDirectory()
        try directory.write(text, "s")
        let client = try world.client(FileStore(directory: directory.url, name: "s"))
        #expect(await client.state == .signedOut(.keyLost))
        #expect(await client.state == .signedOut(.keyLost))
        #expect(directory.text("s.damaged") == text)
        #expect(world.events.count("store_damaged") == 1)
        try await world.signIn(client, family: "R", user: "mike")
        #expect(await client.state.isSignedIn)
    }

    @Test func `nothing grows without bound`() async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        for number in 0..<30 {
            try await client.change { $0.keep(PendingRequest(id: "p\(number)", kind: "code", ["handle": "h"])) }
        }
        for number in 0..<12 { _ = try await client.accessToken(for: .api(scopes: ["s\(number)"])) }
        for number in 0..<9 {
            await world.server.next(.cut, at: "/connect/revoke")
            try await client.signOut()
            try await world.signIn(client, family: "F\(number)", user: "mike")
            await client.revoking?.value
        }
        await world.server.next(.cut, at: "/connect/revoke")
        let document = try await client.document()
        #expect(document.pending.map(\.id) == (22..<30).map { "p\($0)" })
        #expect(document.tokens.count <= 8)
        #expect(document.toRevoke.count <= 5)
        #expect(document.data.map(\.count) ?? 0 <= 65_536)
    }

    @Test func `tokens and what is to be revoked are the newest`() {
        var document = Document()
        for number in 0..<12 {
            let token = AccessToken(value: "t\(number)", type: .dpop, scopes: [], expiresAt: .distantFuture)
            document.keep(StoredToken(token, audience: "a\(number)", issuedAt: .distantPast))
            document.toRevoke.append("r\(number)")
        }
        #expect(document.tokens.map(\.value) == (4..<12).map { "t\($0)" })
        #expect(document.toRevoke == (7..<12).map { "r\($0)" })
    }

    @Test func `while the store is locked nothing happens`() async throws {
        let store = FaultyStore()
        let client = try await world.signedIn(store)
        let before = await store.data
        await store.fail(reads: .locked)
        #expect(await client.state == .locked)
        await expect(.unavailable(retryAfter: nil)) { try await client.accessToken() }
        await expect(.unavailable(retryAfter: nil)) { try await client.signOut() }
        let url = try #require(URL(string: "https://api.example/"))
        await expect(.unavailable(retryAfter: nil)) { try await client.send(URLRequest(url: url)) }
        #expect(await world.server.seen.isEmpty)
        await store.fail()
        #expect(await store.data == before)
        #expect(await client.state.isSignedIn)
        _ = try await client.accessToken()
    }

    @Test func `a token that could not be stored is not handed out`() async throws {
        let store = FaultyStore()
        let client = try await world.signedIn(store)
        world.time.pass(900)
        await store.fail(writes: .full)
        await expect(.unavailable(retryAfter: nil)) { try await client.accessToken() }
        await store.fail()
        #expect(try await client.accessToken().type == .dpop)
        #expect(await world.server.seen.compactMap { $0.form["refresh_token"] } == ["R.1", "R.1"])
        #expect(try await client.document().session?.refreshToken == "R.2")
    }

    @Test func `an origin and a client have a document of their own`() async throws {
        let directory = try TemporaryDirectory()
        let store = FileStore(directory: directory.url)
        let client = try await world.signedIn(store)
        #expect(await client.state == (try world.client(store)).state)
        #expect(try await world.client(store, clientID: "other").state == .signedOut(.never))
        #expect(try await world.client(store, origin: "https://other.example").state == .signedOut(.never))
    }

    @Test func `random bytes are a document or none, and never a trap`() {
        var random = SystemRandomNumberGenerator()
        let sample = Array(
            #"{"v":1,"key":{"kind":"software","value":"AA"},"session":{"id":"x","idToken":"e30.e30.x"},"tokens":[1,{}]}"#
                .utf8)
        for _ in 0..<2000 {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if let document = try? Document(Data(bytes)) { _ = (document.state, document.tokens, document.data) }
        }
    }
}

/// A folder for one test.
final class TemporaryDirectory: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("postern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    func write(_ text: String, _ name: String, mode: Int = 0o600) throws {
        let isWritten = FileManager.default.createFile(
            atPath: path(name), contents: Data(text.utf8), attributes: [.posixPermissions: mode])
        try #require(isWritten)
    }

    func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: path(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    func mode(_ name: String) -> Int? {
        (try? FileManager.default.attributesOfItem(atPath: path(name)))?[.posixPermissions] as? Int
    }
}
