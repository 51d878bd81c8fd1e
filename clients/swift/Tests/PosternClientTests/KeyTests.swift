import Foundation
import Testing

@testable import PosternClient

@Suite("Keys and proofs")
struct KeyTests {
    let world = World()

    @Test func `the key is stored before the first request`() async throws {
        let store = MemoryStore()
        let client = try world.client(store)
        await world.server.next(.cut)
        await expect(.unavailable(retryAfter: nil)) { try await client.post("/anything", [:]) }
        #expect(try Document(await store.read()).key?.kind == .software)
    }

    @Test func `without a key requests have no proof, but those of the device have`() async throws {
        let client = try await world.signedIn(key: .none)
        world.time.pass(900)
        #expect(try await client.accessToken().type == .bearer)
        _ = try await client.deviceCall("GET", "/connect/devices/self")
        #expect(await world.server.seen.map { $0.proof != nil } == [false, true])
    }

    @Test(arguments: [600, -600, 94_608_000] as [TimeInterval])
    func `a wrong clock is learned from the first answer, also by the next process`(ahead: TimeInterval) async throws {
        let store = MemoryStore()
        await world.server.setAhead(-ahead)
        let client = try world.client(store)
        await world.server.next(.answer(400, ["error": "use_dpop_nonce"], ["DPoP-Nonce": "n1"]))
        for _ in 0..<50 { _ = try await client.post("/anything", [:]) }
        _ = try await world.client(store).post("/anything", [:])
        let seen = await world.server.seen
        #expect(seen.count == 52)
        let right = world.time.now.timeIntervalSince1970 - ahead
        #expect(seen.dropFirst().allSatisfy { abs(($0.proof?["iat"]?.number ?? 0) - right) <= 30 })
        #expect(world.events.count("clock") == 1)
    }

    @Test func `a nonce is used for a minute`() async throws {
        let client = try world.client()
        await world.server.next(.answer(400, ["error": "use_dpop_nonce"], ["DPoP-Nonce": "n1"]))
        _ = try await client.post("/anything", [:])
        world.time.pass(59)
        _ = try await client.post("/anything", [:])
        world.time.pass(2)
        _ = try await client.post("/anything", [:])
        #expect(await world.server.seen.map { $0.proof?["nonce"]?.string } == [nil, "n1", "n1", nil])
    }

    @Test func `a nonce that works once is dropped after its use`() async throws {
        let client = try world.client()
        await world.server.next(.answer(400, ["error": "use_dpop_nonce"], ["DPoP-Nonce": "n1"]))
        await expect(.refused(code: "invalid_grant", description: nil, status: 400)) {
            try await client.token([], as: .other, spendsNonce: true)
        }
        _ = try await client.post("/anything", [:])
        #expect(await world.server.seen.map { $0.proof?["nonce"]?.string } == [nil, "n1", nil])
    }

    @Test(arguments: [(["DPoP-Nonce": "n1"], 2), ([:], 1), (["DPoP-Nonce": "n1, n2"], 1)])
    func `a server that asks for a nonce without end is unavailable`(fields: [String: String], requests: Int)
        async throws
    {
        let client = try world.client()
        let fate = FakeServer.Fate.answer(400, ["error": "use_dpop_nonce"], fields)
        await world.server.next(fate, fate, fate)
        await expect(.unavailable(retryAfter: nil)) { try await client.post("/anything", [:]) }
        #expect(await world.server.seen.count == requests)
    }

    @Test func `a refresh that an HTTP stack sends twice brings the successor`() async throws {
        let client = try await world.signedIn()
        world.time.pass(900)
        await world.server.next(.twice)
        _ = try await client.accessToken()
        #expect(try await client.document().session?.refreshToken == "R.2")
    }

    @Test func `another request that is sent twice is made anew where that is safe`() async throws {
        let client = try await world.signedIn(scopes: ["openid", "offline_access"])
        await world.server.next(.twice)
        _ = try await client.accountCall("GET", "/connect/account")
        #expect(await world.server.count("/connect/account") == 2)
        await world.server.next(.twice)
        await expect(.unavailable(retryAfter: nil)) { try await client.post("/anything", [:]) }
        _ = try await client.post("/anything", [:])
        #expect(await world.server.count("/anything") == 2)
    }

    @Test func `a session without its key is lost, and gets no second one`() async throws {
        let client = try await world.signedIn()
        try await client.change { $0.key = nil }
        await expect(.signedOut(.keyLost)) { try await client.accessToken() }
        #expect(await client.state == .signedOut(.keyLost))
        #expect(await world.server.seen.isEmpty)
        #expect(try await client.document().key == nil)
    }

    @Test func `a session of another key is lost`() async throws {
        let client = try await world.signedIn()
        let other = StoredKey(.software, try SoftwareKey().value)
        try await client.change { $0.key = other }
        await expect(.signedOut(.keyLost)) { try await client.accessToken() }
    }

    @Test(arguments: [KeyFailure.locked, .lost])
    func `a key that does not sign`(failure: KeyFailure) async throws {
        let keys = FailingKeys()
        let client = try await world.signedIn(keys: keys)
        world.time.pass(900)
        await keys.fail(failure)
        let isLocked = if case .locked = failure { true } else { false }
        await expect(isLocked ? .unavailable(retryAfter: nil) : .signedOut(.keyLost)) { try await client.accessToken() }
        #expect(await client.state.isSignedIn == isLocked)
        #expect(await world.server.seen.isEmpty)
        await keys.fail(nil)
        if isLocked { _ = try await client.accessToken() }
    }

    @Test func `a proof names the request and its token`() async throws {
        let proof = try await Proof.make(
            try SoftwareKey(), method: "POST", url: "https://id.example/connect/token?x=1#y", token: "t", nonce: nil,
            at: Date(timeIntervalSince1970: 1.9))
        let named = try #require(claims(of: proof))
        #expect(named["htu"] == "https://id.example/connect/token" && named["iat"] == 1)
        #expect(named["ath"] == .string(Base64URL.encode(Digest.sha256(Data("t".utf8)))))
    }

    @Test func `no two proofs are alike, also when they are made at once`() async throws {
        let isFull = ProcessInfo.processInfo.environment["POSTERN_FULL"] != nil
        let (key, count) = (try SoftwareKey(), isFull ? 10_000 : 1000)
        let proofs = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var made: [String] = []
                    for _ in 0..<count / 4 {
                        made.append(
                            try await Proof.make(
                                key, method: "POST", url: "https://id.example/connect/token", token: nil, nonce: nil,
                                at: Date(timeIntervalSince1970: 1.9)))
                    }
                    return made
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(Set(proofs).count == count)
        #expect(Set(proofs.compactMap { claims(of: $0)?["jti"]?.string }).count == count)
    }

    private func claims(of proof: String) -> JSONValue? {
        Base64URL.decode(String(proof.split(separator: ".")[1])).flatMap { JSONValue($0) }
    }

    @Test func `a key is what RFC 7638 and RFC 6979 know it by`() async throws {
        // The key of RFC 6979, A.2.5.
        let secret = try #require(Data(hex: "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"))
        let key = try SoftwareKey(secret)
        #expect(
            key.jwk["x"] == "YP7UuiVwM6VG7WgdVZAqs-ib15dNd6-aG5oFh3Yt7ss"
                || key.point.prefix(4) == Data(hex: "60FED4BA"))
        #expect(try await key.signature(of: Data("sample".utf8)).count == 64)
        #expect(throws: KeyFailure.self) { try SoftwareKey(Data(count: 32)) }
        #expect(throws: KeyFailure.self) { try SoftwareKey(Data(repeating: 0xFF, count: 32)) }
        #expect(throws: KeyFailure.self) { try SoftwareKey(Data(count: 31)) }
    }
}

/// Keys that stop signing.
actor FailingKeys: Keys {
    private var failure: KeyFailure?

    func fail(_ failure: KeyFailure?) { self.failure = failure }

    func make(_ policy: KeyPolicy) async throws -> StoredKey { try await PlatformKeys().make(policy) }

    func open(_ stored: StoredKey) async throws -> any SigningKey {
        FailingKey(key: try await PlatformKeys().open(stored), keys: self)
    }

    func check() throws { if let failure { throw failure } }
}

struct FailingKey: SigningKey {
    let key: any SigningKey
    let keys: FailingKeys
    var point: Data { key.point }

    func signature(of message: Data) async throws -> Data {
        try await keys.check()
        return try await key.signature(of: message)
    }
}

extension Data {
    init?(hex: String) {
        let digits = Array(hex)
        guard digits.count % 2 == 0 else { return nil }
        let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0..<$0 + 2]), radix: 16)
        }
        guard bytes.count * 2 == digits.count else { return nil }
        self.init(bytes)
    }
}
