import Crypto
import Foundation
import Persistence
import Testing

@testable import Grants

private let redirect = "https://app.a.example/cb"

private func client(
    _ clientID: String = "web", secret: String? = nil, uris: [String] = [redirect]
) -> Client {
    var client = Client.fixture(
        clientID, secret: secret, permissions: ["gt:authorization_code", "gt:refresh_token", "scp:orders"])
    client.hosted.redirectURIs = uris
    return client
}

private func realm(_ clients: Client...) throws -> Realm {
    try Realm.fixture(clients: clients).changed {
        $0.hosted = Hosted(
            isEnabled: true, methods: [.emailCode], defaultLocale: "en", singleSignOnIdle: 3600, signInLifetime: 1800,
            codeLifetime: 60, offersPasskey: false)
    }
}

private let right: [(name: String, value: String)] = [
    ("client_id", "web"), ("redirect_uri", redirect), ("response_type", "code"), ("scope", "openid orders"),
    ("state", "s & ä"), ("nonce", "n"), ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
    ("code_challenge_method", "S256"), ("max_age", "60"), ("acr_values", "x phr urn:postern:acr:2"),
    ("resource", "https://orders.example"), ("ui_locales", "de en"), ("login_hint", "ada@example.com"),
]

private func request(_ changes: [String: String?] = [:], _ given: Realm? = nil) throws -> AuthorizationRequest {
    let realm = try given ?? realm(client())
    var pairs = right.filter { changes[$0.name] == nil }
    for case (let name, let value?) in changes { pairs.append((name, value)) }
    guard let form = FormParameters(pairs) else { throw AuthorizationRefusal.page(.invalidRequest) }
    return try AuthorizationRequest(
        AuthorizationRequest.Parameters(form, issuer: realm.issuer), realm: realm, from: .query)
}

@Suite("Authorization requests")
struct AuthorizationRequestTests {
    @Test func `what was checked survives its compact form`() throws {
        let realm = try realm(client())
        let one = try request([:], realm)
        let two = try AuthorizationRequest(one.encoded, realm: realm)
        #expect(two.encoded == one.encoded)
        #expect(two.state == "s & ä" && two.nonce == "n" && two.maximumAge == 60)
        #expect(two.scope == ["openid", "orders"] && two.audience == ["https://orders.example"])
        #expect(two.acrValues == ["phr", "urn:postern:acr:2"] && two.uiLocales == ["de", "en"])
        #expect(two.loginHint == "ada@example.com" && two.target == one.target)
    }

    @Test(arguments: [nil, Channel.sms, .whatsapp])
    func `a wanted proof survives its compact form`(_ channel: Channel?) throws {
        let one = WantedProof(.phone, prefersLink: true, channel: channel)
        #expect(WantedProof(one.encoded) == one)
        for end in one.encoded.indices { #expect(WantedProof(one.encoded[..<end]) == nil) }
        #expect(WantedProof(one.encoded.dropLast() + [3]) == nil)
    }

    @Test func `a hint survives as its user and session`() throws {
        let form = try #require(FormParameters(right)), device = (user: UUIDValue.random(), session: UUIDValue.random())
        let one = AuthorizationRequest.Parameters(form, device: device, issuer: "https://a.example")
        let two = try #require(AuthorizationRequest.Parameters(one.encoded, issuer: "https://a.example"))
        #expect(two.device?.user == device.user && two.device?.session == device.session)
    }

    @Test func `a request is checked again under the configuration of the moment`() throws {
        let encoded = try request().encoded
        #expect(throws: AuthorizationRefusal.page(.invalidRedirectURI)) {
            try AuthorizationRequest(encoded, realm: realm(client(uris: [])))
        }
        #expect(throws: AuthorizationRefusal.page(.invalidClient)) {
            try AuthorizationRequest(encoded, realm: realm(client("other")))
        }
        #expect(throws: AuthorizationRefusal.page(.hostedDisabled)) {
            try AuthorizationRequest(encoded, realm: Realm.fixture(clients: [client()]))
        }
    }

    @Test func `no bytes reach a trap`() throws {
        let realm = try realm(client())
        let encoded = try request([:], realm).encoded
        for end in encoded.indices {
            _ = try? AuthorizationRequest(Array(encoded[..<end]), realm: realm)
        }
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            var altered = encoded
            for _ in 0..<3 { altered[Int.random(in: altered.indices, using: &generator)] = .random(in: 0...255) }
            _ = try? AuthorizationRequest(altered, realm: realm)
        }
    }

    @Test func `a pushed request remembers that its client authenticated`() throws {
        var pushing = client()
        pushing.hosted.requiresPAR = true
        let realm = try realm(pushing)
        #expect(throws: AuthorizationRefusal.self) { try request([:], realm) }
        let id = [UInt8](repeating: 7, count: 32)
        let parameters = AuthorizationRequest.Parameters(try #require(FormParameters(right)), issuer: realm.issuer)
        let pushed = try AuthorizationRequest(parameters, realm: realm, from: .pushed(id: id))
        #expect(try AuthorizationRequest(pushed.encoded, realm: realm).pushedID == id)
        #expect(throws: AuthorizationRefusal.self) {
            try AuthorizationRequest(parameters, realm: realm, from: .stored(id: id))
        }
    }

    @Test func `max_age 0 is a wish for a new sign-in`() throws {
        #expect(try request(["max_age": "0"]).prompts == [.login])
        #expect(try request(["max_age": "0", "prompt": "none"]).prompts == [.none])
    }

    @Test(
        "a loopback URI of a public client matches with any port",
        arguments: [
            ("http://127.0.0.1:1/cb", true), ("http://127.0.0.1/cb", true), ("http://127.0.0.1:65535/cb", true),
            ("http://127.0.0.1:65536/cb", false), ("http://127.0.0.1:99999999999999999999/cb", false),
            ("http://127.0.0.1:/cb", false), ("http://127.0.0.1:0/cb", false), ("http://127.0.0.1:80@evil/cb", false),
            ("http://127.0.0.1.evil/cb", false), ("http://[::1]:5/cb", false), ("http://localhost/cb", false),
        ])
    func loopback(uri: String, isKnown: Bool) {
        #expect(client(uris: ["http://127.0.0.1/cb"]).mayRedirect(to: uri) == isKnown)
        #expect(
            client(secret: "s", uris: ["http://127.0.0.1/cb"]).mayRedirect(to: uri) == (uri == "http://127.0.0.1/cb"))
    }

    @Test func `a host below localhost has the registered port alone`() {
        let client = client(uris: ["http://app.localhost:8080/cb"])
        #expect(client.mayRedirect(to: "http://app.localhost:8080/cb"))
        for uri in ["http://app.localhost:8081/cb", "http://app.localhost/cb", "http://localhost:8080/cb"] {
            #expect(!client.mayRedirect(to: uri))
        }
    }

    @Test(
        "a response is appended to the redirect URI as it is",
        arguments: [
            ("https://a.example/cb", "https://a.example/cb?"),
            ("https://a.example/cb?t=1", "https://a.example/cb?t=1&"),
            ("yourapp://", "yourapp://?"), ("com.example.app:/cb", "com.example.app:/cb?"),
            ("http://localhost:8080", "http://localhost:8080?"), ("https://a.example/cb?", "https://a.example/cb?"),
        ])
    func response(uri: String, begins: String) {
        let target = AuthorizationResponse.Target(
            redirectURI: uri, mode: .query, state: "a b\r\n&", issuer: "https://i.example", pushedID: nil)
        #expect(
            AuthorizationResponse.code("pac_x", to: target).url
                == begins + "code=pac_x&state=a%20b%0D%0A%26&iss=https%3A%2F%2Fi.example")
    }

    /// RFC 7636 appendix B.
    @Test func `a verifier hashes to its challenge`() {
        #expect(
            AuthorizationCodeGrant.challenge(of: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
                == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        for verifier in ["", "short", String(repeating: "x", count: 129), String(repeating: "%", count: 43)] {
            #expect(AuthorizationCodeGrant.challenge(of: verifier) == "")
        }
    }
}

@Suite("Limits counted in one process")
struct LocalLimitTests {
    @Test func `a burst, then one permit at a time`() throws {
        let now = Mutable(ContinuousClock.now)
        let limit = LocalLimit(clock: { now.value })
        let realm = try realm(client()).changed {
            $0.rateLimits = [.authorize: [.source: RateLimit(permits: 60, per: 60, burst: 3, enforced: true)]]
        }
        for _ in 0..<3 { #expect(limit.refusal(.authorize, "192.0.2.1", realm: realm) == nil) }
        #expect(limit.refusal(.authorize, "192.0.2.1", realm: realm) == 1)
        #expect(limit.refusal(.authorize, "192.0.2.2", realm: realm) == nil)
        now.value += .seconds(1)
        #expect(limit.refusal(.authorize, "192.0.2.1", realm: realm) == nil)
        #expect(limit.refusal(.authorize, "192.0.2.1", realm: realm) == 1)
    }

    @Test func `many networks of one /48 share sixteen times the permits`() throws {
        let now = Mutable(ContinuousClock.now)
        let limit = LocalLimit(clock: { now.value })
        let realm = try realm(client()).changed {
            $0.rateLimits = [.authorize: [.source: RateLimit(permits: 1, per: 60, burst: 1, enforced: true)]]
        }
        let refused = (0..<32).count { limit.refusal(.authorize, "2001:db8:1:\($0):0:0:0:0/64", realm: realm) != nil }
        #expect(refused == 16)
    }
}

private final class Mutable: @unchecked Sendable {
    var value: ContinuousClock.Instant
    init(_ value: ContinuousClock.Instant) { self.value = value }
}
