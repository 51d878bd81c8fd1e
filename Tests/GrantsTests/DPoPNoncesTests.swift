import Encoding
@testable import Grants
import Persistence
import Testing

@Suite("Nonces for proofs of possession")
struct DPoPNoncesTests {
    private static let now = ProofDraft.now
    private let nonces = DPoPNonces(keyring: .fixture())

    private func realm(_ policy: DPoPPolicy) throws -> Realm {
        try Realm.fixture(id: ProofDraft.realmID).changed { $0.dpop = policy }
    }

    /// What becomes of a proof with a nonce, and with an `iat` of long ago.
    private func verdict(_ nonce: String?, _ policy: DPoPPolicy = DPoPPolicy(), at now: Double = now, iat: Double = 1)
        throws -> Result<DPoPProof, DPoPRefusal>
    {
        var draft = ProofDraft(iat: iat)
        draft.set(\.payload, "nonce", nonce.map(quoted))
        return try draft.verify(at: now, realm: try realm(policy))
    }

    private func due(_ verdict: Result<DPoPProof, DPoPRefusal>) -> (reason: String, nonce: String)? {
        if case .failure(.nonceDue(let reason, let nonce)) = verdict { (reason, nonce) } else { nil }
    }

    @Test func `nonces are all different, of one length, and made of characters of a field`() {
        let characters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let made = (0..<100_000).map { _ in nonces.make(realm: ProofDraft.realmID, at: Self.now) }
        #expect(Set(made).count == made.count)
        #expect(made.allSatisfy { $0.utf8.count == 64 && $0.allSatisfy(characters.contains) })
    }

    @Test func `a nonce tells its time to the millisecond`() throws {
        let nonce = nonces.make(realm: ProofDraft.realmID, at: Self.now + 0.0625)
        #expect(nonces.time(of: nonce, realm: ProofDraft.realmID, at: Self.now) == Self.now + 0.062)
    }

    @Test func `a nonce that answers a lost store is of a later millisecond than the store, whatever rounding does`()
        throws
    {
        let verifier = DPoPVerifier(nonces: nonces) { Self.now }
        let realm = try realm(DPoPPolicy())
        for milliseconds in 1...2000 {
            let since = Self.now + Double(milliseconds) / 1000
            let nonce = try #require(due(.failure(verifier.nonceDue("lost", realm: realm, after: since)))?.nonce)
            let time = try #require(nonces.time(of: nonce, realm: ProofDraft.realmID, at: since))
            #expect((time * 1000).rounded() == (since * 1000).rounded() + 1)
        }
    }

    @Test(
        "without a nonce, iat is of this minute",
        arguments: [(0.0, true), (60, true), (-60, true), (61, false), (-61, false), (600, false)])
    func clock(_ offset: Double, _ holds: Bool) throws {
        let verdict = try verdict(nil, iat: Self.now + offset)
        #expect(((try? verdict.get()) != nil) == holds)
        #expect(due(verdict)?.reason == (holds ? nil : "iat"))
    }

    @Test func `a nonce mends a wrong clock, and is what the proof is dated by`() throws {
        let asked = try #require(due(try verdict(nil)))
        let proof = try verdict(asked.nonce).get()
        #expect(proof.isByNonce && proof.time == Self.now && proof.freshNonce == nil)
        // It serves any number of proofs, and is good for one of the right time as well.
        #expect(try verdict(asked.nonce, iat: Self.now).get().time == Self.now)
    }

    @Test(
        "a nonce is accepted as long as the realm says, and not from more than a minute ahead",
        arguments: [
            (300, 299.0, true), (300, 301, false), (60, 59, true), (60, 61, false), (1800, 1799, true),
            (1800, 1801, false), (300, -30, true), (300, -60, true), (300, -61, false), (300, -90, false),
        ])
    func lifetime(_ lifetime: Int, _ age: Double, _ holds: Bool) throws {
        let nonce = nonces.make(realm: ProofDraft.realmID, at: Self.now - age)
        let verdict = try verdict(nonce, DPoPPolicy(nonceLifetime: lifetime), iat: Self.now)
        // An old nonce is not outdone by a fresh iat: its proof may be forgotten, and would be good again.
        #expect(((try? verdict.get()) != nil) == holds)
        if !holds { #expect(due(verdict).map { $0.nonce != nonce } == true) }
    }

    @Test func `what is no nonce of the realm is answered with one that is`() throws {
        let nonce = nonces.make(realm: ProofDraft.realmID, at: Self.now)
        let foreign = nonces.make(realm: .random(), at: Self.now)
        let forged = DPoPNonces(keyring: .fixture(9)).make(realm: ProofDraft.realmID, at: Self.now)
        let texts = [
            foreign, forged, String(nonce.dropLast()), nonce + "A", "", "x", String(repeating: "A", count: 64),
            String(repeating: "A", count: 2000), nonce + "=", " " + nonce.dropFirst(), "é",
        ]
        for text in texts {
            let asked = try #require(due(try verdict(text, iat: Self.now)), "\(text)")
            #expect(asked.reason == "nonce")
            #expect(throws: Never.self) { try verdict(asked.nonce).get() }
        }
    }

    @Test func `each bit of a nonce counts`() throws {
        let bytes = try #require(Base64.urlDecode(nonces.make(realm: ProofDraft.realmID, at: Self.now)))
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << UInt8(bit)
                let text = Base64.urlEncode(changed)
                #expect(nonces.time(of: text, realm: ProofDraft.realmID, at: Self.now) == nil, "\(index) \(bit)")
            }
        }
    }

    @Test func `nonces under each line of the key file are good, whichever line comes first`() throws {
        let (old, new) = (Keyring.fixture(1, 2), Keyring.fixture(2, 1))
        for (maker, reader) in [(old, new), (new, old), (old, old), (new, new)] {
            let nonce = DPoPNonces(keyring: maker).make(realm: ProofDraft.realmID, at: Self.now)
            #expect(DPoPNonces(keyring: reader).time(of: nonce, realm: ProofDraft.realmID, at: Self.now) == Self.now)
        }
        let nonce = DPoPNonces(keyring: new).make(realm: ProofDraft.realmID, at: Self.now)
        #expect(nonces.time(of: nonce, realm: ProofDraft.realmID, at: Self.now) == nil, "its line is not there")
    }

    @Test func `where nonces are required, a proof without one is asked for one`() throws {
        let required = DPoPPolicy(requiresNonce: true)
        let asked = try #require(due(try verdict(nil, required, iat: Self.now)))
        #expect(asked.reason == "no nonce")
        #expect(throws: Never.self) { try verdict(asked.nonce, required).get() }
    }

    @Test(
        "where nonces are required, one past half its life brings the next",
        arguments: [(149.0, false), (150, false), (151, true), (299, true)])
    func half(_ age: Double, _ brings: Bool) throws {
        let nonce = nonces.make(realm: ProofDraft.realmID, at: Self.now - age)
        let proof = try verdict(nonce, DPoPPolicy(requiresNonce: true)).get()
        #expect((proof.freshNonce != nil) == brings)
        if let fresh = proof.freshNonce {
            #expect(try verdict(fresh, DPoPPolicy(requiresNonce: true)).get().time == Self.now)
        }
        #expect(try verdict(nonce).get().freshNonce == nil, "where they are not, none does")
    }

    @Test func `a mode that this server does not know is the strict one`() {
        #expect(!DPoPPolicy(DPoPPolicyRecord(nonce: "auto", nonceLifetime: 60)).requiresNonce)
        #expect(DPoPPolicy(DPoPPolicyRecord(nonce: "required", nonceLifetime: 60)).requiresNonce)
        #expect(DPoPPolicy(DPoPPolicyRecord(nonce: "other", nonceLifetime: 60)).requiresNonce)
    }
}
