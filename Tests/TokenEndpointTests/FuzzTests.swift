import HTTPTypes
import NIOCore
import NIOHTTP1
import Synchronization
import Testing
@testable import TokenEndpoint

/// SplitMix64: the same bytes in every run.
private struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// Whatever comes, the process lives, every answer is one that the server means to give, and the next caller is served.
@Suite("Arbitrary input", .serialized)
struct FuzzTests {
    private static let host = "fuzz.example"

    /// The composed application, with a realm.
    private static let application = Task {
        let nodes = try await TestNodes.shared.value
        _ = try await nodes.realm("fuzz")
        return nodes.one
    }

    private static func request(_ line: String, _ fields: String..., form: String? = nil) -> [UInt8] {
        let type = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: \(form?.utf8.count ?? 0)"]
        let head = ["\(line) HTTP/1.1", "Host: \(host)"] + fields + (form == nil ? [] : type)
        return Array((head.joined(separator: "\r\n") + "\r\n\r\n" + (form ?? "")).utf8)
    }

    /// Requests that are right, to be spoiled.
    private static let seeds = [
        request("GET /.well-known/openid-configuration"),
        request(
            "POST /connect/token",
            form:
                "grant_type=urn%3Acocoar%3Aotp&client_id=fuzz-app&username=ada%40mail.example&otp_code=123456"
                + "&scope=openid"
        ),
        request(
            "POST /connect/token",
            form: "grant_type=refresh_token&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type"
                + "%3Ajwt-bearer&client_assertion=eyJ9.eyJ9.AA&resource=https%3A%2F%2Fa.example&resource=x"),
        request("POST /connect/introspect", "Authorization: Basic YXBpOnMzY3JldA==", form: "token=pat_AAAA"),
        request("GET /connect/userinfo", "Authorization: Bearer pat_AAAA", "Expect: 100-continue"),
        request("DELETE /connect/sessions/AAAA", "X-Forwarded-For: 192.0.2.1, ::1", "Authorization: Bearer pat_AAAA"),
        request("POST /api/account/native/otp/request", "Content-Type: application/json", "Transfer-Encoding: chunked")
            + Array("1C\r\n{\"Email\":\"ada@mail.example\"}\r\n0\r\n\r\n".utf8),
    ]

    /// What the server may say to a stranger. 503 is not among them: nothing is out of order.
    private static let statuses: Set<Int> = [100, 200, 202, 400, 401, 403, 404, 405, 413, 415, 417, 429, 431]

    /// A request with a few bytes, or many, as they should not be.
    private func spoiled(_ random: inout SeededGenerator) -> [UInt8] {
        guard Int.random(in: 0..<8, using: &random) > 0 else {
            return (0..<Int.random(in: 1...600, using: &random)).map { _ in .random(in: .min ... .max, using: &random) }
        }
        var bytes = Self.seeds.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where place < bytes.count: bytes[place] = .random(in: .min ... .max, using: &random)
            case 1 where place < bytes.count: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...40, using: &random)))
            case 3: bytes.insert(contentsOf: bytes.suffix(Int.random(in: 1...60, using: &random)), at: place)
            case 4: bytes.insert(contentsOf: [0x0D, 0x0A], at: place)
            default:
                let wild: [UInt8] = [0, 0x0A, 0x20, 0x25, 0x26, 0x2B, 0x3D, 0x7F, 0x80, 0xFF]
                bytes.insert(wild.randomElement(using: &random) ?? 0, at: place)
            }
        }
        return bytes
    }

    @Test(arguments: UInt64(1)...4)
    func `no bytes on a connection stop the server or get an answer it does not mean`(_ seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let responder = try await Self.application.value.responder
        let server = TestServer(maximum: 10_000, maximumPerSource: 10_000) { await responder.respond(to: $0, from: $1) }
        for round in 0..<500 {
            let connection = try #require(try await server.connect())
            let bytes = spoiled(&random)
            let cut = Int.random(in: 0...bytes.count, using: &random)
            for part in [bytes[..<cut], bytes[cut...]] where !part.isEmpty { try await connection.send(Array(part)) }
            try await connection.fire(ChannelEvent.inputClosed)
            try await connection.closed()
            let unmeant = connection.statuses.filter { !Self.statuses.contains($0) }
            #expect(unmeant == [], "seed \(seed), round \(round): \(String(decoding: bytes, as: UTF8.self))")
        }
        let next = try #require(try await server.connect())
        try await next.send(Self.seeds[0])
        #expect(try await next.answers(1).last?.status == 200)
        #expect(server.metrics.text().contains("\npostern_connections 1\n"))
    }

    @Test(arguments: UInt64(1)...4)
    func `no text in a field, a target or a form gets an answer that the server does not mean`(_ seed: UInt64)
        async throws
    {
        let application = try await Self.application.value
        var random = SeededGenerator(seed: seed)
        let targets = [
            "/connect/token", "/connect/introspect", "/connect/revoke", "/connect/userinfo", "/connect/passkey/begin",
            "/api/account/native/otp/request", "/api/account/magic-link/request", "/connect/sessions", "/magic-login",
            "/connect/authorize", "/connect/par", "/connect/logout", "/connect/identifiers", "/sign-in", "/undo/x",
        ]
        func text(_ maximum: Int) -> String {
            let characters = Array("abc%2F%00%zz+&==\"\\{}[]:,. ä\u{0}\u{7F}😀/?#@;'<>-_~0123456789\t\r\n")
            let length = Int.random(in: 0...maximum, using: &random)
            return String((0..<length).map { _ in characters.randomElement(using: &random) ?? "x" })
        }
        for round in 0..<500 {
            let isJSON = Bool.random(using: &random)
            var headers = [("Content-Type", isJSON ? "application/json" : "application/x-www-form-urlencoded")]
            for name in [
                "Authorization", "X-Forwarded-For", "X-Forwarded-Host", "User-Agent", "Accept-Language",
                "Postern-Forwarded-For",
            ]
            where Int.random(in: 0..<3, using: &random) == 0 {
                headers.append((name, (Bool.random(using: &random) ? "Basic " : "Bearer ") + text(40)))
            }
            let body =
                isJSON
                ? "{\"Email\":\"\(text(20))\",\"ClientId\":\(text(6)),\"\(text(5))\":[\(text(5))]}"
                : "grant_type=\(["refresh_token", "urn:cocoar:otp", text(9)].randomElement(using: &random) ?? "")"
                    + "&client_id=fuzz-app&refresh_token=\(text(30))&otp_code=\(text(9))&username=\(text(20))"
                    + "&\(text(9))=\(text(9))"
            let host = Int.random(in: 0..<4, using: &random) == 0 ? text(12) : Self.host
            let target =
                (targets.randomElement(using: &random) ?? "/") + (Bool.random(using: &random) ? "?" + text(20) : "")
            let method = [HTTPMethod.GET, .POST, .POST, .DELETE, .PATCH].randomElement(using: &random) ?? .POST
            let request = Request.fixture(method, target, host: [host], headers, body: body)
            let address = Bool.random(using: &random) ? ResponderFixture.stranger : ResponderFixture.proxy
            let answer = await application.answer(request, from: address)
            #expect(Self.statuses.contains(answer.status.code), "seed \(seed), round \(round): \(request)")
        }
    }
}
