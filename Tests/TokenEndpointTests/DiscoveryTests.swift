import Foundation
import Grants
import HTTPTypes
import NIOHTTP1
import Persistence
import Synchronization
import TestSupport
import Testing
@testable import TokenEndpoint

/// Grants that are only named.
private struct NamedGrant: Grant {
    let grantType: GrantType
    let isNative: Bool

    func isEnabled(in realm: Realm) -> Bool { realm.nativeGrantsEnabled || !isNative }
    func requireParameters(_ form: FormParameters) throws(TokenError) {}
    func redeem(_ request: TokenRequest) async throws -> TokenResponse { throw TokenError.unavailable("not asked") }
}

@Suite("Discovery")
struct DiscoveryTests {
    private static let metadata = "/.well-known/openid-configuration"
    private static let jwks = "/.well-known/jwks"
    private static let now = 1_800_000_000.0

    private final class Clock: Sendable {
        private let time = Mutex(DiscoveryTests.now)
        var read: @Sendable () -> Double { { self.time.withLock { $0 } } }
        func advance(_ seconds: Double) { time.withLock { $0 += seconds } }
    }

    private let clock = Clock()

    private func fixture(_ realm: RealmDocument, hosts: [String] = ["r.example"]) -> ResponderFixture {
        // Nothing here asks the database: keys come with the configuration.
        let database = Database(configuration: DatabaseConfiguration(conninfo: ""), logger: quiet)
        let service = TokenService(
            [
                NamedGrant(grantType: .otp, isNative: true), NamedGrant(grantType: .refreshToken, isNative: false),
            ],
            clients: ClientAuthenticator(
                assertions: ClientAssertionStore(database), limiter: RateLimiter(permits: nil), clock: clock.read),
            databaseClock: DatabaseClock(clock: clock.read),
            proofs: Proofs(
                verifier: DPoPVerifier(nonces: DPoPNonces(keyring: .fixture()), clock: clock.read),
                store: ProofStore(database), latest: clock.read))
        let keys = SigningKeys(store: SigningKeyStore(database), keyring: .fixture())
        return ResponderFixture(
            DiscoveryRoutes(service: service, signingKeys: keys, clock: clock.read).routes,
            realms: Dictionary(uniqueKeysWithValues: hosts.map { ($0, realm) }))
    }

    private func kids(_ answer: Answer) -> [String] {
        (answer.member("keys") as [[String: Any]]?)?.compactMap { $0["kid"] as? String } ?? []
    }

    @Test func `the document names the realm's own endpoints under its issuer`() async {
        let answer = await fixture(RealmDocument()).answer(.fixture(.GET, Self.metadata))
        #expect(answer.status == .ok)
        #expect(answer.member("issuer") == "https://r.example")
        for (name, path) in [
            ("token_endpoint", "/connect/token"), ("jwks_uri", "/.well-known/jwks"),
            ("userinfo_endpoint", "/connect/userinfo"), ("introspection_endpoint", "/connect/introspect"),
            ("revocation_endpoint", "/connect/revoke"),
        ] {
            #expect(answer.member(name) == "https://r.example" + path)
        }
        #expect(answer.member("authorization_endpoint", as: String.self) == nil)
        #expect(answer.member("response_types_supported") == ["none"])
    }

    @Test func `both well-known names answer the same bytes, and HEAD as GET`() async {
        let fixture = fixture(RealmDocument())
        let answer = await fixture.answer(.fixture(.GET, Self.metadata))
        #expect(await fixture.answer(.fixture(.GET, "/.well-known/oauth-authorization-server")) == answer)
        #expect(await fixture.answer(.fixture(.HEAD, Self.metadata)) == answer)
    }

    @Test func `native grants are named while the realm has them on`() async {
        var realm = RealmDocument()
        let on = await fixture(realm).answer(.fixture(.GET, Self.metadata))
        #expect(on.member("grant_types_supported") == ["refresh_token", "urn:cocoar:otp"])
        realm.nativeGrantsEnabled = false
        let off = await fixture(realm).answer(.fixture(.GET, Self.metadata))
        #expect(off.member("grant_types_supported") == ["refresh_token"])
    }

    @Test func `scopes that are disabled or not for discovery are not named`() async {
        let answer = await fixture(RealmDocument()).answer(.fixture(.GET, Self.metadata))
        #expect(answer.member("scopes_supported") == ["openid", "profile"])
    }

    @Test func `only methods without a secret are named where a public client may call`() async {
        let answer = await fixture(RealmDocument()).answer(.fixture(.GET, Self.metadata))
        let methods = ["client_secret_post", "client_secret_basic", "private_key_jwt"]
        #expect(answer.member("token_endpoint_auth_methods_supported") == ["none"] + methods)
        #expect(answer.member("revocation_endpoint_auth_methods_supported") == ["none"] + methods)
        #expect(answer.member("introspection_endpoint_auth_methods_supported") == methods)
    }

    @Test func `an App's host names its own endpoints and switch under the realm's issuer`() async {
        var realm = RealmDocument(issuer: "https://r.example:8443")
        realm.apps = [RealmDocument.app("shop", host: "shop.r.example", nativeGrantsEnabled: false)]
        let fixture = fixture(realm, hosts: ["r.example", "shop.r.example"])
        let answer = await fixture.answer(.fixture(.GET, Self.metadata, host: ["shop.r.example"]))
        #expect(answer.member("issuer") == "https://r.example:8443")
        #expect(answer.member("token_endpoint") == "https://shop.r.example:8443/connect/token")
        #expect(answer.member("grant_types_supported") == ["refresh_token"])
        let own = await fixture.answer(.fixture(.GET, Self.metadata))
        #expect(own.member("token_endpoint") == "https://r.example:8443/connect/token")
        #expect(own.headers[.eTag] != answer.headers[.eTag])
    }

    @Test func `a document may be kept for five seconds, keys for five minutes, by host`() async {
        var realm = RealmDocument()
        realm.signingKeys = [RealmDocument.signingKey("k")]
        let fixture = fixture(realm)
        let (document, keys) = (
            await fixture.answer(.fixture(.GET, Self.metadata)), await fixture.answer(.fixture(.GET, Self.jwks))
        )
        #expect(document.headers[.cacheControl] == "public, max-age=5")
        #expect(keys.headers[.cacheControl] == "public, max-age=300")
        #expect(document.headers[.vary] == "Host, Origin")
        let proxied = await fixture.answer(.fixture(.GET, Self.metadata), from: ResponderFixture.proxy)
        #expect(proxied.headers[.vary] == "Host, X-Forwarded-Host, Origin")
    }

    @Test(arguments: [metadata, jwks])
    func `a reader that has the document is told so without a body`(_ path: String) async throws {
        var realm = RealmDocument()
        realm.signingKeys = [RealmDocument.signingKey("k")]
        let fixture = fixture(realm)
        let tag = try #require(await fixture.answer(.fixture(.GET, path)).headers[.eTag])
        let same = await fixture.answer(.fixture(.GET, path, [("If-None-Match", tag)]))
        #expect(same.status == .notModified)
        #expect(same.body.isEmpty)
        #expect(same.headers[.eTag] == tag)
        // It is known now.
        #expect(same.headers[.cacheControl] == "public, max-age=\(path == Self.jwks ? 300 : 5)")
        #expect(await fixture.answer(.fixture(.GET, path, [("If-None-Match", "\"other\"")])).status == .ok)
    }

    @Test func `a changed configuration changes the document at once`() async {
        var realm = RealmDocument()
        let fixture = fixture(realm)
        let before = await fixture.answer(.fixture(.GET, Self.metadata))
        realm.version += 1
        realm.nativeGrantsEnabled = false
        fixture.configuration.put(realm, host: "r.example")
        fixture.realms.clusters[0].changed(realm.id.description)
        let after = await fixture.answer(.fixture(.GET, Self.metadata))
        #expect(after.member("grant_types_supported") == ["refresh_token"])
        #expect(after.headers[.eTag] != before.headers[.eTag])
    }

    @Test func `one realm's documents are not another's, whatever they have in common`() async {
        let fixture = fixture(RealmDocument(id: UUIDValue.random()), hosts: ["r.example"])
        fixture.configuration.put(RealmDocument(issuer: "https://s.example"), host: "s.example")
        #expect(await fixture.answer(.fixture(.GET, Self.metadata)).member("issuer") == "https://r.example")
        let other = await fixture.answer(.fixture(.GET, Self.metadata, host: ["s.example"]))
        #expect(other.member("issuer") == "https://s.example")
    }

    @Test
    func
        `the key set holds the next, the active and the retiring key, and drops one in the second in which it retires`()
        async
    {
        var realm = RealmDocument()
        realm.signingKeys = [
            RealmDocument.signingKey("next", "EdDSA", from: Self.now + 600),
            RealmDocument.signingKey("active", "ES256", from: Self.now - 600),
            RealmDocument.signingKey("retiring", "RS256", from: 0, until: Self.now + 10),
            RealmDocument.signingKey("retired", "RS256", from: 0, until: Self.now),
        ]
        let fixture = fixture(realm)
        let first = await fixture.answer(.fixture(.GET, Self.jwks))
        #expect(kids(first) == ["next", "active", "retiring"])
        #expect(!first.text.contains("sealed"), "the public halves alone")
        clock.advance(9.5)
        #expect(kids(await fixture.answer(.fixture(.GET, Self.jwks))) == ["next", "active", "retiring"])
        clock.advance(0.5)
        #expect(kids(await fixture.answer(.fixture(.GET, Self.jwks))) == ["next", "active"])
    }

    @Test func `the algorithms are those of the published keys`() async {
        var realm = RealmDocument()
        let name = "id_token_signing_alg_values_supported"
        #expect(await fixture(realm).answer(.fixture(.GET, Self.metadata)).member(name) == ["ES256"])
        realm.signingKeys = [
            RealmDocument.signingKey("a", "RS256"), RealmDocument.signingKey("b", "EdDSA", from: Self.now + 600),
            RealmDocument.signingKey("c", "ES256", until: Self.now - 1),
        ]
        #expect(await fixture(realm).answer(.fixture(.GET, Self.metadata)).member(name) == ["EdDSA", "RS256"])
    }

    @Test func `an algorithm is no longer named once its last key has retired`() async {
        var realm = RealmDocument()
        realm.signingKeys = [
            RealmDocument.signingKey("a", "RS256", until: Self.now + 10), RealmDocument.signingKey("b", "ES256"),
        ]
        let (fixture, name) = (fixture(realm), "id_token_signing_alg_values_supported")
        #expect(await fixture.answer(.fixture(.GET, Self.metadata)).member(name) == ["ES256", "RS256"])
        clock.advance(10)
        #expect(await fixture.answer(.fixture(.GET, Self.metadata)).member(name) == ["ES256"])
    }

    @Test func `keys that cannot be made are an outage, and the document is served`() async {
        let fixture = fixture(RealmDocument())
        #expect(await fixture.answer(.fixture(.GET, Self.jwks)) == .unavailable)
        #expect(fixture.log.lines.contains { $0.hasPrefix("error jwks") })
        #expect(await fixture.answer(.fixture(.GET, Self.metadata)).status == .ok)
    }
}
