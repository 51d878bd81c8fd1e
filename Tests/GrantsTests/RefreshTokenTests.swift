@testable import Grants
import Persistence
import Testing

@Suite("Refresh tokens")
struct RefreshTokenTests {
    private let keyring = Keyring.fixture()
    private let realm = UUIDValue.random()

    @Test func `a token is read back as issued`() throws {
        let issued = RefreshToken.first(realm: realm, session: .random(), keyring: keyring)
        let read = try #require(RefreshToken(issued.text, realm: realm, keyring: keyring))
        #expect(read == issued)
        #expect(read.generation == 0)
    }

    @Test func `no character can be changed`() {
        let issued = RefreshToken.first(realm: realm, session: .random(), keyring: keyring)
        let characters = Array(issued.text)
        for index in characters.indices {
            var changed = characters
            changed[index] = changed[index] == "A" ? "B" : "A"
            #expect(RefreshToken(String(changed), realm: realm, keyring: keyring) == nil)
        }
    }

    @Test(
        "other texts are not tokens",
        arguments: ["", "prt_", "prt_AAAA", "pat_AAAA", " ", String(repeating: "a", count: 65_536)])
    func garbage(_ text: String) {
        #expect(RefreshToken(text, realm: realm, keyring: keyring) == nil)
    }

    @Test func `surrounding blanks, padding and truncation are refused`() {
        let text = RefreshToken.first(realm: realm, session: .random(), keyring: keyring).text
        for variant in [" " + text, text + " ", text + "=", String(text.dropLast()), text + "A"] {
            #expect(RefreshToken(variant, realm: realm, keyring: keyring) == nil)
        }
    }

    @Test func `a token of another realm or another server is not a token`() {
        let text = RefreshToken.first(realm: realm, session: .random(), keyring: keyring).text
        #expect(RefreshToken(text, realm: .random(), keyring: keyring) == nil)
        #expect(RefreshToken(text, realm: realm, keyring: .fixture(2)) == nil)
    }

    @Test func `the successor is the same every time and differs from its predecessor`() throws {
        let first = RefreshToken.first(realm: realm, session: .random(), keyring: keyring)
        let successors = first.successors(keyring: keyring)
        let successor = try #require(successors.first)
        #expect(successors.count == 1)
        #expect(first.successors(keyring: keyring) == successors)
        #expect(successor.generation == 1)
        #expect(successor.session == first.session)
        #expect(successor.text != first.text)
        #expect(RefreshToken(successor.text, realm: realm, keyring: keyring) == successor)
    }

    @Test func `after a key rotation old tokens are read and the old successor is still among the candidates`() throws {
        let first = RefreshToken.first(realm: realm, session: .random(), keyring: .fixture(1))
        let before = try #require(first.successors(keyring: .fixture(1)).first)
        let rotated = Keyring.fixture(2, 1)
        let read = try #require(RefreshToken(first.text, realm: realm, keyring: rotated))
        let candidates = read.successors(keyring: rotated)
        #expect(candidates.count == 2)
        #expect(candidates.first != before)
        #expect(candidates.contains(before))
    }
}

@Suite("Sealed reference access tokens")
struct SealedReferenceTests {
    private let keyring = Keyring.fixture()
    private let realm = UUIDValue.random()
    private let salt = randomBytes(16)

    private func token(scope: [String] = ["openid", "email"]) -> AccessToken {
        AccessToken(
            owner: .random(), issuedAt: 1_000, lifetime: 900, sessionExpiresAt: 10_000, scope: scope,
            audience: ["https://a.example", "https://b.example"])
    }

    @Test("a token is read back as issued", arguments: [[], ["openid"], ["openid", "email"]])
    func roundTrip(scope: [String]) throws {
        let issued = token(scope: scope)
        let text = try SealedReference.text(issued, epoch: 400, realm: realm, salt: salt, keyring: keyring)
        let opened = try #require(SealedReference(text, realm: realm, keyring: keyring))
        #expect(opened.token(epoch: 400, salt: salt) == issued)
    }

    @Test func `a token that says a context of its own is read back with it`() throws {
        var issued = token()
        issued.acr = "phr"
        let text = try SealedReference.text(issued, epoch: 400, realm: realm, salt: salt, keyring: keyring)
        let opened = try #require(SealedReference(text, realm: realm, keyring: keyring))
        #expect(opened.token(epoch: 400, salt: salt) == issued)
    }

    @Test func `the key file alone proves nothing: the session row's salt must fit`() throws {
        let text = try SealedReference.text(token(), epoch: 400, realm: realm, salt: salt, keyring: keyring)
        let opened = try #require(SealedReference(text, realm: realm, keyring: keyring))
        #expect(opened.token(epoch: 400, salt: randomBytes(16)) == nil)
    }

    @Test func `no character can be changed`() throws {
        let characters = Array(
            try SealedReference.text(token(), epoch: 400, realm: realm, salt: salt, keyring: keyring))
        for index in characters.indices {
            var changed = characters
            changed[index] = changed[index] == "A" ? "B" : "A"
            #expect(SealedReference(String(changed), realm: realm, keyring: keyring) == nil)
        }
    }

    @Test func `a token of another realm does not open`() throws {
        let text = try SealedReference.text(token(), epoch: 400, realm: realm, salt: salt, keyring: keyring)
        #expect(SealedReference(text, realm: .random(), keyring: keyring) == nil)
    }

    @Test func `a token never outlives its session`() {
        let short = AccessToken(
            owner: .random(), issuedAt: 1_000, lifetime: 900, sessionExpiresAt: 1_100, scope: [], audience: [])
        #expect(short.expiresAt == 1_100)
    }
}
