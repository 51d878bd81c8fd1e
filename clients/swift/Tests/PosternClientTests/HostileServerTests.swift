import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Servers that say odd things")
struct HostileServerTests {
    let world = World()
    private let codePath = "/api/account/native/otp/request"

    @Test(arguments: [
        String(repeating: "[", count: 100_000),
        String(repeating: #"{"a":"#, count: 400) + "1" + String(repeating: "}", count: 400),
        "\"" + String(repeating: "x", count: 1 << 21) + "\"", "1e999", "\u{FEFF}", "<html>",
    ])
    func `a body that is deep, long or no JSON decides nothing`(text: String) async throws {
        let client = try world.client()
        await world.server.next(.answer(200, body: Data(text.utf8)), at: codePath)
        await expect(.unavailable(retryAfter: nil)) { try await client.requestCode(to: mail) }
        #expect(await world.server.count(codePath) == 1)
        #expect(try await client.pending.isEmpty)
    }

    @Test func `values are read 64 deep, and brackets of strings do not count`() {
        func nested(_ depth: Int) -> Data {
            Data((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        #expect(JSONValue(nested(64)) != nil && JSONValue(nested(65)) == nil)
        let text = String(repeating: #"[{\"\\"#, count: 100)
        #expect(JSONValue(Data(#"["\#(text)"]"#.utf8))?.array?.count == 1)
    }

    @Test func `a redirect is a refusal, and leads nowhere`() async throws {
        let client = try world.client()
        await world.server.next(.answer(307, nil, ["Location": "https://evil.example/"]), at: codePath)
        await expect(.refused(code: "307", description: nil, status: 307)) { try await client.requestCode(to: mail) }
        #expect(await world.server.seen.count == 1)
    }

    @Test(arguments: [1e300, -1e300, 253_402_300_800, -62_135_769_601])
    func `an impossible time is not learnt, and does not end the process`(time: Double) async throws {
        let client = try world.client()
        let request = try await world.code(client)
        var answer = try #require(await opened(["iat": .number(time)]).object)
        answer["expires_in"] = .number(900)
        await world.server.next(
            .answer(200, .object(answer), ["Date": "Fri, 31 Dec 9999 23:59:59 GMT"]), at: "/connect/token")
        let user = try await client.signIn(code: "123456", for: request)
        #expect(try await client.document().clockOffset == 0)
        #expect(!"\(user)".isEmpty)
        for life in [1e300, -1, 0] {
            answer["expires_in"] = .number(life)
            await world.server.next(.answer(200, .object(answer)), at: "/connect/token")
            let other = try await world.code(client)
            await expect(.unavailable(retryAfter: nil)) { try await client.signIn(code: "1", for: other) }
        }
        let early = try await world.code(client)
        answer["expires_in"] = .number(900)
        answer["id_token"] = try await opened(["iat": .number(time), "auth_time": .number(time)])["id_token"]
        await world.server.next(.answer(200, .object(answer)), at: "/connect/token")
        await expect(.unavailable(retryAfter: nil)) { try await client.signIn(code: "1", for: early) }
    }

    @Test func `an interval of a century is a minute, and a pause of one is told, not slept`() async throws {
        let client = try world.client()
        await world.server.next(.asked(["Interval": .number(1e300)]), at: "/api/account/magic-link/request")
        let request = try await client.requestLink(to: mail)
        await world.server.next(.refusal("authorization_pending"), at: "/connect/token")
        await world.opens()
        #expect(try await client.wait(for: request).id == "mike")
        #expect(world.time.sleeps == [60])
        await world.server.next(.answer(429, ["retryAfterSeconds": .number(1e300)]), at: codePath)
        await expect(.rateLimited(retryAfter: 60)) { try await client.requestCode(to: mail) }
    }

    @Test func `the longest sleep can be begun and given up`() async {
        let sleep = Task { try await Surroundings().sleep(1e300) }
        sleep.cancel()
        await #expect(throws: CancellationError.self) { try await sleep.value }
    }

    @Test(arguments: ["https://other.example", "", "https://id.example/"])
    func `an ID token of another issuer or client is refused, and its session revoked`(issuer: String) async throws {
        for claims: [String: JSONValue] in [["iss": .string(issuer)], ["aud": "other"], ["aud": ["a", "b"]]] {
            let client = try world.client()
            let request = try await world.code(client)
            await world.server.next(.answer(200, try await opened(claims)), at: "/connect/token")
            await expect(.refused(code: "invalid_response", description: nil, status: 200)) {
                try await client.signIn(code: "123456", for: request)
            }
            await client.revoking?.value
            #expect(await client.state == .signedOut(.never))
        }
        #expect(await world.server.revoked == ["R.1", "R.1", "R.1"])
    }

    @Test func `the challenge of an API is bounded`() throws {
        let url = try #require(URL(string: "https://api.example/"))
        func challenge(_ text: String) throws -> StepUpChallenge? {
            let response = HTTPURLResponse(
                url: url, statusCode: 401, httpVersion: nil, headerFields: ["WWW-Authenticate": text])
            return StepUpChallenge(try #require(response))
        }
        let asks = "DPoP error=\"insufficient_user_authentication\""
        #expect(try challenge("\(asks), max_age=99999999999999999999")?.maxAge == nil)
        #expect(try challenge("\(asks), max_age=-1")?.maxAge == nil)
        #expect(try challenge("\(asks), x=\"\(String(repeating: "x", count: 8192))\"") == nil)
        #expect(try challenge("\(asks), acr_values=\"") == nil)
        #expect(try challenge(String(repeating: ",", count: 8000)) == nil)
    }

    /// What the token endpoint answers, with other claims in the ID token.
    private func opened(_ claims: [String: JSONValue]) async throws -> JSONValue {
        await world.server.add("R", FakeServer.Family(user: "mike"))
        var answer = try #require(await world.server.tokens("R", scope: "openid offline_access").object)
        let usual = try #require(answer["id_token"]?.string.flatMap(IDToken.init)?.claims)
        answer["id_token"] = .string(
            "e30." + Base64URL.encode(JSONValue.object(usual.merging(claims) { $1 }).data) + ".c2ln")
        return .object(answer)
    }
}
