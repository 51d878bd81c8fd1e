import Foundation
import Testing

@testable import PosternClient

@Suite("Origins")
struct OriginTests {
    let world = World()

    @Test(arguments: [
        "http://evil.example%2F.localhost", "http://evil.example%23.localhost", "http://evil.example%00.localhost",
        "http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://127.0.0.1@evil.example",
        "http://evil.example", "http://2130706433", "http://0x7f.1", "https://id.example/realm", "https://id.example?",
        "https://me@id.example", "https://id%2Fexample", "ftp://id.example", "https:///x",
    ])
    func `an origin that leads elsewhere, or to plain http, is a mistake`(text: String) throws {
        let error = #expect(throws: PosternError.self) { try world.client(origin: text) }
        guard case .misuse? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(arguments: [
        ("HTTPS://ID.Example.:443/", "https://id.example"), ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://garden.localhost:80", "http://garden.localhost"), ("http://LOCALHOST.", "http://localhost"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ])
    func `an origin has one spelling`(text: String, spelling: String) throws {
        #expect(try world.client(origin: text).origin == spelling)
    }

    @Test func `a proof names the host as it is sent, of a name with letters of other scripts too`() async throws {
        let client = try world.client(origin: "https://bücher.example")
        _ = try await client.post("/anything", [:])
        let seen = try #require(await world.server.seen.first)
        #expect(seen.proof?["htu"] == "https://xn--bcher-kva.example/anything")
        #expect(seen.request.url?.absoluteString == "https://xn--bcher-kva.example/anything")
    }
}
