import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Calling an API")
struct SendTests {
    let world = World()

    private func request(_ url: String, _ method: String = "GET") throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        request.httpMethod = method
        return request
    }

    @Test func `a request has the token and a proof for exactly its method and URL`() async throws {
        let client = try await world.signedIn()
        let request = try await client.authorized(request("https://api.example/orders?page=2#x", "PUT"))
        let proof = try #require(FakeServer.Seen(request: request).proof)
        #expect(request.value(forHTTPHeaderField: "Authorization") == "DPoP access-R-1")
        #expect(proof["htm"] == "PUT" && proof["htu"] == "https://api.example/orders")
        #expect(proof["ath"] == .string(Base64URL.encode(Digest.sha256(Data("access-R-1".utf8)))))
    }

    @Test func `a token is not sent without TLS, twice, or with a stream`() async throws {
        let client = try await world.signedIn()
        _ = try await client.authorized(request("http://127.0.0.1:9/"))
        var twice = try request("https://api.example/")
        twice.setValue("Bearer x", forHTTPHeaderField: "Authorization")
        var stream = try request("https://api.example/", "POST")
        stream.httpBodyStream = InputStream(data: Data())
        for request in [try request("http://api.example/"), twice, stream] {
            let error = await #expect(throws: PosternError.self) { try await client.authorized(request) }
            guard case .misuse? = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func `nonces of an API and of the server are not mixed`() async throws {
        let client = try await world.signedIn()
        await world.server.next(
            .answer(401, nil, ["WWW-Authenticate": #"DPoP error="use_dpop_nonce""#, "DPoP-Nonce": "of-api"]))
        let (_, response) = try await client.send(request("https://api.example/orders"))
        #expect(response.statusCode == 200)
        _ = try await client.post("/anything", [:])
        #expect(await world.server.seen.map { $0.proof?["nonce"]?.string } == [nil, "of-api", nil])
    }

    @Test func `a refused token is refreshed once, and the answer after it is the answer`() async throws {
        let client = try await world.signedIn()
        let refusal = FakeServer.Fate.answer(401, nil, ["WWW-Authenticate": #"DPoP error="invalid_token""#])
        await world.server.next(refusal, at: "/orders")
        #expect(try await client.send(request("https://api.example/orders")).1.statusCode == 200)
        #expect(await world.server.count("/connect/token") == 1)
        await world.server.next(refusal, refusal, at: "/orders")
        #expect(try await client.send(request("https://api.example/orders")).1.statusCode == 401)
        #expect(await world.server.count("/connect/token") == 2)
        #expect(await world.server.count("/orders") == 4)
    }

    @Test(arguments: [401, 403, 500, 302]) func `any other answer is returned`(status: Int) async throws {
        let client = try await world.signedIn()
        await world.server.next(.answer(status, nil, ["Location": "https://evil.example/"]))
        #expect(try await client.send(request("https://api.example/orders")).1.statusCode == status)
        #expect(await world.server.seen.count == 1)
    }

    @Test func `a request without an answer is not sent again`() async throws {
        let client = try await world.signedIn()
        await world.server.next(.dropped)
        await expect(.unavailable(retryAfter: nil)) {
            try await client.send(request("https://api.example/orders", "POST"))
        }
        #expect(await world.server.seen.count == 1)
    }

    @Test func `an API may ask for a stronger sign-in`() async throws {
        let client = try await world.signedIn()
        let field = #"DPoP error="insufficient_user_authentication", acr_values="phr urn:postern:acr:2", max_age="600""#
        await world.server.next(.answer(401, nil, ["WWW-Authenticate": field]))
        let error = await #expect(throws: PosternError.self) {
            try await client.send(request("https://api.example/orders"))
        }
        guard case .stepUpNeeded(let challenge)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(challenge.levels == ["phr", "urn:postern:acr:2"] && challenge.maxAge == 600)
    }

    @Test func `the end of a token is counted by a clock that cannot be set`() async throws {
        let client = try await world.signedIn()
        world.time.set(by: -3600)
        world.time.pass(20 * 60)
        _ = try await client.accessToken()
        #expect(await world.server.count("/connect/token") == 1)
    }

    @Test func `a token of another process is used by the wall clock, and not before its issue`() async throws {
        let store = MemoryStore()
        _ = try await world.signedIn(store)
        _ = try await world.client(store).accessToken()
        #expect(await world.server.count("/connect/token") == 0)
        world.time.set(by: -10)
        _ = try await world.client(store).accessToken()
        #expect(await world.server.count("/connect/token") == 1)
    }
}
