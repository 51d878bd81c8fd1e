import Encoding
import Crypto
@testable import Grants
import Persistence
import Testing

@Suite("ID-token hints")
struct IDTokenHintTests {
    private let key = SigningKey(kid: "k1", privateKey: .es256(P256.Signing.PrivateKey()))
    private let user = UUIDValue.random()
    private let session = UUIDValue.random()

    private func realm(_ keys: SigningKey...) throws -> Realm {
        let realm = try Realm.fixture(clients: [.fixture("app"), .fixture("other")])
        let hintKeys = try keys.map { key in
            guard case .es256(let secret) = key.privateKey else { throw Unexpected() }
            let point = secret.publicKey.rawRepresentation
            let publicKey = ClientKey(
                kty: "EC", crv: "P-256", x: Base64.urlEncode(point.prefix(32)), y: Base64.urlEncode(point.suffix(32)),
                n: nil, e: nil, kid: key.kid, alg: "ES256")
            return try #require(HintKey(kid: key.kid, alg: "ES256", publicJWK: publicKey))
        }
        return realm.changed { $0.hintKeys = hintKeys }
    }

    private struct Unexpected: Error {}

    private func token(
        of key: SigningKey? = nil, typ: String = "JWT", iss: String = "https://r.example", aud: String = "app",
        sub: String? = nil, sid: String? = nil
    ) throws -> String {
        var claims = JSONWriter()
        claims.member("iss", iss)
        claims.member("sub", sub ?? user.description)
        claims.member("aud", aud)
        claims.member("exp", 1)
        claims.member("sid", sid ?? session.description)
        return try (key ?? self.key).sign(claims.finish(), typ: typ)
    }

    @Test func `an ID token of the realm names its account and its session, long after it expired`() throws {
        let hint = try #require(IDTokenHint(token(), realm: realm(key), client: nil))
        #expect(hint.user == user)
        #expect(hint.session == session)
    }

    @Test func `where the request names a client it must be the audience`() throws {
        let realm = try realm(key)
        #expect(IDTokenHint(try token(), realm: realm, client: realm.clients["app"]) != nil)
        #expect(IDTokenHint(try token(), realm: realm, client: realm.clients["other"]) == nil)
    }

    @Test func `any key that is not deleted will do, and no other`() throws {
        let retired = SigningKey(kid: "k0", privateKey: .es256(P256.Signing.PrivateKey()))
        let foreign = SigningKey(kid: "k1", privateKey: .es256(P256.Signing.PrivateKey()))
        #expect(IDTokenHint(try token(of: retired), realm: try realm(key, retired), client: nil) != nil)
        #expect(IDTokenHint(try token(of: retired), realm: try realm(key), client: nil) == nil)
        #expect(IDTokenHint(try token(of: foreign), realm: try realm(key), client: nil) == nil, "the same kid")
    }

    @Test func `other tokens of the realm are none`() throws {
        let realm = try realm(key)
        #expect(IDTokenHint(try token(typ: "at+jwt"), realm: realm, client: nil) == nil)
        #expect(IDTokenHint(try token(typ: "token-introspection+jwt"), realm: realm, client: nil) == nil)
        #expect(IDTokenHint(try token(iss: "https://other.example"), realm: realm, client: nil) == nil)
        #expect(IDTokenHint(try token(sub: "ada"), realm: realm, client: nil) == nil)
        #expect(IDTokenHint(try token(sid: ""), realm: realm, client: nil) == nil)
    }

    @Test(
        "a claim that is said twice is none, though the realm's key signed it",
        arguments: [#""sub":"\#(UUIDValue.random())""#, #""aud":"other""#])
    func repeatedClaims(_ second: String) throws {
        let claims = #"{"iss":"https://r.example","sub":"\#(user)","aud":"app","sid":"\#(session)""#
        let realm = try realm(key)
        let once = try key.sign(Array((claims + "}").utf8), typ: "JWT")
        #expect(IDTokenHint(once, realm: realm, client: nil) != nil)
        let twice = try key.sign(Array((claims + "," + second + "}").utf8), typ: "JWT")
        #expect(IDTokenHint(twice, realm: realm, client: nil) == nil)
    }

    @Test func `what is too long or has other parts is not looked at`() throws {
        let realm = try realm(key)
        let good = try token()
        for text in [
            "", ".", "..", good + ".", "." + good, String(good.dropLast(8)), good + String(repeating: "A", count: 4096),
        ] {
            #expect(IDTokenHint(text, realm: realm, client: nil) == nil)
        }
    }
}

@Suite("Permits of requests")
struct RequestPermitsTests {
    @Test func `a broad limit keeps a fifth, a small one nothing`() {
        let limit = RateLimit(permits: 6000, per: 3600, burst: 6000, enforced: true)
        #expect(limit.part(.open) == RateLimit(permits: 4800, per: 3600, burst: 4800, enforced: true))
        #expect(limit.part(.reserve) == RateLimit(permits: 1200, per: 3600, burst: 1200, enforced: true))
        #expect(limit.part(.whole) == limit)
        let small = RateLimit(permits: 4, per: 3600, burst: 100, enforced: true)
        #expect(small.part(.open) == small)
        #expect(small.part(.reserve) == nil)
    }

    @Test func `of a large limit a quarter is for each source, a small one has none`() {
        let limit = RateLimit(permits: 6000, per: 3600, burst: 6000, enforced: true)
        #expect(limit.part(.common)?.permits == 3300)
        #expect(limit.part(.each)?.permits == 1500)
        #expect(limit.part(.share)?.permits == 30)
        let small = RateLimit(permits: 999, per: 3600, burst: 999, enforced: true)
        #expect(small.part(.common) == small.part(.open))
        #expect(small.part(.each) == nil)
        #expect(small.part(.share) == nil)
    }

    @Test(arguments: [
        ("2001:db8:1:2:0:0:0:0/64", "2001:db8:1:0:0:0:0:0/48"), ("192.0.2.1", "192.0.2.1"), ("x/64", "x/64"),
    ])
    func `a whole network is one source`(source: String, whole: String) {
        #expect(SourceNetwork.whole(source) == whole)
    }
}
