import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Pages")
struct PageTests {
    let world = World()

    private func client() throws -> PosternClient {
        var configuration = try world.client().configuration
        configuration.redirectURI = URL(string: "https://app.example/signed-in")
        return try PosternClient(configuration, world.time.surroundings)
    }

    @Test func `the request has PKCE, state, nonce and the key, and the code is redeemed once`() async throws {
        let client = try client()
        await world.server.next(.answer(200, ["issuer": "https://id.example"]), .cut)
        let page = Page()
        var browser = Passer()
        browser.members = { request in
            page.set(request)
            return [("code", "code-secret"), ("state", request["state"] ?? ""), ("iss", FakeServer.origin)]
        }
        var options = PageOptions()
        (options.levels, options.maxAge, options.locales) = (["phr", "urn:postern:acr:2"], 600, ["de", "en"])
        await expect(.unavailable(retryAfter: nil)) { try await client.signIn(onPages: browser, options: options) }
        let request = page.request
        let thumbprint = try await client.key(for: .session, in: client.document())?.thumbprint
        #expect(
            request["response_type"] == "code" && request["client_id"] == "app" && request["dpop_jkt"] == thumbprint)
        #expect(request["redirect_uri"] == "https://app.example/signed-in")
        #expect(request["acr_values"] == "phr urn:postern:acr:2" && request["max_age"] == "600")
        #expect(request["ui_locales"] == "de en" && request["id_token_hint"] == nil)
        let sent = await world.requests("/connect/token")
        #expect(sent.count == 1)
        let verifier = try #require(sent[0].form["code_verifier"])
        #expect(request["code_challenge"] == Base64URL.encode(Digest.sha256(Data(verifier.utf8))))
        #expect(sent[0].form["code"] == "code-secret" && sent[0].form["redirect_uri"] == request["redirect_uri"])
    }

    @Test func `an ID token of another sign-in is refused, and its session revoked`() async throws {
        let client = try client()
        await world.opens(nonce: "another")
        await expect(.refused(code: "invalid_response", description: nil, status: 200)) {
            try await client.signIn(onPages: Passer())
        }
        await client.revoking?.value
        #expect(await world.server.revoked == ["R.1"])
        #expect(await client.state == .signedOut(.never))
    }

    @Test func `without a redirect URI the pages are a mistake`() async throws {
        let client = try world.client()
        await #expect(throws: PosternError.self) { try await client.signIn(onPages: Passer()) }
        #expect(await world.server.seen.isEmpty)
    }

    // MARK: The browser of the device

    @Test func `junk, a huge request and one that never ends do not keep the browser from coming back`() async throws {
        let shown = Page()
        let browser = LoopbackBrowser { shown.set(["page": $0.absoluteString]) }
        let registered = try #require(URL(string: "http://127.0.0.1/signed-in"))
        let redirect = try await browser.redirect(for: registered)
        let port = try #require(redirect.port)
        let page = try #require(URL(string: "https://id.example/page?state=s"))
        async let returned = browser.open(page, until: redirect)
        let stuck = try Peer(port)
        stuck.send("GET /signed-in?state=x HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nX: ")
        let huge = try Peer(port)
        huge.send("GET /" + String(repeating: "x", count: 65_536) + " HTTP/1.1\r\n\r\n")
        for number in 0..<100 {
            let peer = try Peer(port)
            peer.send(
                [
                    "\r\n\r\n", "POST /signed-in?state=s HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n",
                    "GET /other?state=s HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n",
                    "GET /signed-in?code=c&state=x HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n",
                    "GET /signed-in?code=c&state=s HTTP/1.1\r\nHost: evil.example:\(port)\r\n\r\n",
                ][number % 5])
            #expect(peer.answer().hasPrefix("HTTP/1.1 404"))
        }
        let right = try Peer(port)
        right.send("GET /signed-in?code=c&state=s HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
        #expect(right.answer().hasPrefix("HTTP/1.1 200"))
        #expect(try await returned.absoluteString == "http://127.0.0.1:\(port)/signed-in?code=c&state=s")
        #expect(shown.request["page"] == "https://id.example/page?state=s")
        #expect(throws: (any Error).self) { try Peer(port) }
    }

    @Test func `a browser that is given up closes its port`() async throws {
        let browser = LoopbackBrowser { _ in }
        let redirect = try await browser.redirect(for: #require(URL(string: "http://127.0.0.1")))
        let page = try #require(URL(string: "https://id.example/page"))
        let opening = Task { try await browser.open(page, until: redirect) }
        opening.cancel()
        await #expect(throws: DialogCancelled.self) { try await opening.value }
        #expect(throws: (any Error).self) { try Peer(#require(redirect.port)) }
        await #expect(throws: PosternError.self) { try await browser.open(page, until: redirect) }
        for other in ["https://127.0.0.1/", "http://app.example/", "app.example:/"] {
            await #expect(throws: PosternError.self) { try await browser.redirect(for: #require(URL(string: other))) }
        }
    }
}

/// What a page was opened with.
private final class Page: @unchecked Sendable {
    private let lock = NSLock()
    private var members: [String: String] = [:]
    var request: [String: String] { lock.withLock { members } }
    func set(_ request: [String: String]) { lock.withLock { members = request } }
}

/// A connection to a port of this device.
private final class Peer {
    private let descriptor: Int32

    init(_ port: Int) throws {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
            let family = sa_family_t(AF_INET)
        #else
            let kind = SOCK_STREAM
            let family = sa_family_t(AF_INET)
        #endif
        descriptor = socket(AF_INET, kind, 0)
        var address = sockaddr_in()
        address.sin_family = family
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if connected != 0 { throw POSIXError(.ECONNREFUSED) }
    }

    deinit { close(descriptor) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count <= 0 { return }
            sent += count
        }
    }

    func answer() -> String {
        var answer: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(descriptor, &bytes, bytes.count)
            if count <= 0 { return String(decoding: answer, as: UTF8.self) }
            answer += bytes[..<count]
        }
    }
}
