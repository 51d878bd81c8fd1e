import Crypto
import Encoding
import Foundation
@testable import Grants
import Persistence
import Testing

/// A change to a right proof, and the check that it does not pass; `nil`: it holds.
struct ProofCase: Sendable, CustomTestStringConvertible {
    let name: String
    let reason: String?
    let spoil: @Sendable (inout ProofDraft) throws -> Void

    init(_ name: String, _ reason: String?, _ spoil: @escaping @Sendable (inout ProofDraft) throws -> Void) {
        self.name = name
        self.reason = reason
        self.spoil = spoil
    }

    var testDescription: String { name }

    /// Several values of one member.
    static func each(
        _ part: @escaping @Sendable () -> WritableKeyPath<ProofDraft, [ProofKey.Member]>, _ name: String,
        _ reason: String?, _ values: [String?]
    ) -> [ProofCase] {
        values.map { value in
            ProofCase("\(name) \((value ?? "absent").prefix(60))", reason) { $0.set(part(), name, value) }
        }
    }

    static func header(_ name: String, _ reason: String?, _ values: String?...) -> [ProofCase] {
        each({ \.header }, name, reason, values)
    }
    static func jwk(_ name: String, _ reason: String?, _ values: String?...) -> [ProofCase] {
        each({ \.jwk }, name, reason, values)
    }
    static func claim(_ name: String, _ reason: String?, _ values: String?...) -> [ProofCase] {
        each({ \.payload }, name, reason, values)
    }
    /// Another text of a header or payload.
    static func header(text: String, _ reason: String?) -> ProofCase {
        ProofCase("header \(text.prefix(60))", reason) { $0.headerText = text }
    }
    static func payload(text: String, _ reason: String?) -> ProofCase {
        ProofCase("payload \(text.prefix(60))", reason) { $0.payloadText = text }
    }
}

@Suite("Proofs of possession")
struct DPoPProofTests {
    @Test(arguments: [ProofKey.es256, .edDSA, .ps256, .rs256])
    func `a right proof holds in each algorithm`(_ key: ProofKey) throws {
        let proof = try ProofDraft(key, jti: "one").verify().get()
        let members = key.jwk.sorted { $0.name < $1.name }
        #expect(proof.thumbprint == sha256(ProofDraft.object(members)))
        #expect(proof.id == Array(SHA256.hash(data: proof.thumbprint + Array("one".utf8))))
        #expect(proof.time == ProofDraft.now && !proof.isByNonce && proof.freshNonce == nil)
    }

    @Test func `the proof of the specification holds`() throws {
        // RFC 9449 §4.2, figure 2, and the thumbprint of its key in §6.1.
        let text =
            "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0Rsc"
            + "EJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2"
            + "In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2"
            + "VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37x"
            + "RZT3Lg"
        let realm = try Realm.fixture()
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: .fixture())) { 1_562_262_616 }
        let url = RequestedURL(realm: realm, host: "server.example.com", path: "/token")
        let proof = try verifier.verify([text], method: "POST", url: url, accessToken: nil, realm: realm)
        #expect(Base64.urlEncode(proof.thumbprint) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    @Test func `a key that is known proves nothing by itself`() throws {
        let realm = try Realm.fixture(id: ProofDraft.realmID)
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: .fixture())) { ProofDraft.now }
        let url = RequestedURL(realm: realm, host: "r.example", path: "/connect/token")
        func verify(_ draft: ProofDraft) throws -> DPoPProof {
            try verifier.verify([draft.text()], method: "POST", url: url, accessToken: nil, realm: realm)
        }
        let first = try verify(ProofDraft(jti: "one"))
        #expect(try verify(ProofDraft(jti: "two")).thumbprint == first.thumbprint)
        var forged = ProofDraft(jti: "three")
        forged.signature = { signature in signature.map { $0 ^ 1 } }
        #expect(throws: DPoPRefusal.invalid(reason: "signature")) { try verify(forged) }
        // The same text names a key of another algorithm.
        var other = ProofDraft(jti: "four")
        other.set(\.header, "alg", #""EdDSA""#)
        #expect(throws: DPoPRefusal.invalid(reason: "key")) { try verify(other) }
    }

    @Test func `a header that the server knows is refused where its algorithm is not admitted`() throws {
        let realm = try Realm.fixture(id: ProofDraft.realmID)
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: .fixture())) { ProofDraft.now }
        let url = RequestedURL(realm: realm, host: "r.example", path: "/connect/token")
        func verify(_ jti: String, _ rules: DPoPRules) throws {
            let text = try ProofDraft(.edDSA, jti: jti).text()
            _ = try verifier.verify([text], method: "POST", url: url, accessToken: nil, realm: realm, rules: rules)
        }
        #expect(throws: DPoPRefusal.invalid(reason: "alg")) { try verify("one", .device) }
        try verify("two", .standard)
        #expect(throws: DPoPRefusal.invalid(reason: "alg")) { try verify("three", .device) }
        try verify("four", .standard)
    }

    @Test func `a trusted device's proof has a nonce although the realm wants none`() throws {
        let realm = try Realm.fixture(id: ProofDraft.realmID)
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: .fixture())) { ProofDraft.now }
        let url = RequestedURL(realm: realm, host: "r.example", path: "/connect/token")
        func verify(_ rules: DPoPRules) throws {
            let text = try ProofDraft(jti: "one").text()
            _ = try verifier.verify([text], method: "POST", url: url, accessToken: nil, realm: realm, rules: rules)
        }
        #expect {
            try verify(.device)
        } throws: { error in
            if case .nonceDue("no nonce", _)? = error as? DPoPRefusal { true } else { false }
        }
        try verify(.standard)
    }

    @Test(
        "thumbprints are those of the specifications",
        arguments: [
            (
                // RFC 7638 §3.1
                ClientKey.Algorithm.rs256,
                #"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tS"#
                    + "oc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2Qvz"
                    + "qY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd"
                    + #"2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","#
                    + #""kid":"2011-04-29"}"#,
                "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
            ),
            (
                // RFC 8037 appendix A.3
                .edDSA, #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
                "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
            ),
        ])
    func thumbprints(_ algorithm: ClientKey.Algorithm, _ jwk: String, _ expected: String) throws {
        let key = try #require(JOSEObject(Array(jwk.utf8)).flatMap { PublicJWK($0, algorithm) })
        #expect(Base64.urlEncode(key.thumbprint) == expected)
    }

    @Test(arguments: Self.formats + Self.headers + Self.keys + Self.signatures + Self.claims + Self.urls)
    func `a proof is what it has to be, or is refused`(_ row: ProofCase) throws {
        var draft = ProofDraft()
        try row.spoil(&draft)
        switch (try draft.verify(), row.reason) {
        case (.success, nil): break
        case (.success, let reason?): Issue.record("accepted, but \(reason)")
        case (.failure(let refusal), let reason):
            #expect(refusal == .invalid(reason: reason ?? "none"))
            // What a nonce cannot mend is not answered with one.
            if !row.name.hasPrefix("iat") { draft.set(\.payload, "iat", "1") }
            if case .failure(.nonceDue) = try draft.verify() { Issue.record("a nonce does not mend this") }
        }
    }

    @Test func `each character of it counts`() throws {
        let good = Array(try ProofDraft().text().utf8)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for index in good.indices where good[index] != UInt8(ascii: ".") {
            var changed = good
            changed[index] = alphabet[((alphabet.firstIndex(of: good[index]) ?? 0) + 1) % 64]
            var draft = ProofDraft()
            let text = String(decoding: changed, as: UTF8.self)
            draft.fields = { _ in [text] }
            if case .success = try draft.verify() { Issue.record("changed at \(index)") }
        }
    }

    @Test func `a proof may be 4096 bytes long, and not one more`() throws {
        for (length, reason) in [(4096, nil), (4097, "length"), (65536, "length")] as [(Int, String?)] {
            var draft = ProofDraft()
            let missing = length - (try draft.text().utf8.count)
            // Base64 grows by 0, 1 or 2 beyond thirds: white space in the header makes up for what is left.
            search: for blanks in 0..<4 {
                for count in max(0, missing * 3 / 4 - 16)...missing {
                    draft.headerText = ProofDraft().headerJSON + String(repeating: " ", count: blanks)
                    draft.set(\.payload, "pad", quoted(String(repeating: "x", count: count)))
                    if try draft.text().utf8.count == length { break search }
                    if try draft.text().utf8.count > length { break }
                }
            }
            #expect(try draft.text().utf8.count == length)
            let verdict = try draft.verify()
            switch reason {
            case nil: #expect(throws: Never.self) { try verdict.get() }
            case let reason?: #expect(throws: DPoPRefusal.invalid(reason: reason)) { try verdict.get() }
            }
        }
    }

    @Test(arguments: [
        ("r.example", "https://r.example/connect/token", true),
        ("shop.r.example", "https://shop.r.example/connect/token", true),
        ("shop.r.example", "https://r.example/connect/token", true),
        ("r.example", "https://shop.r.example/connect/token", false),
        ("other.r.example", "https://shop.r.example/connect/token", false),
        ("r.example", "https://b.example/connect/token", false),
    ])
    func `a proof names the host that was asked, or the issuer`(_ asked: String, _ htu: String, _ holds: Bool) throws {
        var draft = ProofDraft()
        draft.set(\.payload, "htu", quoted(htu))
        let realm = try Realm.fixture()
        let verdict = try draft.verify(
            realm: realm, url: RequestedURL(realm: realm, host: asked, path: "/connect/token"))
        #expect(((try? verdict.get()) != nil) == holds)
    }

    @Test func `a host has the port of the issuer`() throws {
        let realm = try Realm(issuer: "http://localhost:8080")
        for (htu, holds) in [
            ("http://shop.localhost:8080/x", true), ("http://localhost:8080/x", true), ("http://localhost/x", false),
            ("https://localhost:8080/x", false), ("http://localhost:80/x", false), ("HTTP://LOCALHOST:8080/x", true),
        ] {
            let url = RequestedURL(realm: realm, host: "shop.localhost", path: "/x")
            #expect(url.isNamed(by: htu) == holds, "\(htu)")
        }
    }

    @Test func `with a token, the proof is of that token`() throws {
        let token = "pat_abc"
        let hash = Base64.urlEncode(sha256(token))
        let wrong = [
            nil, quoted(Base64.urlEncode(sha256("pat_abd"))), quoted(Base64.urlEncode(sha256("Bearer \(token)"))),
            quoted(hash + "="), quoted(""),
            quoted(Base64.urlEncode(Array(SHA512.hash(data: Array(token.utf8))))),
        ]
        for ath in wrong {
            var draft = ProofDraft()
            draft.set(\.payload, "ath", ath)
            #expect(throws: DPoPRefusal.invalid(reason: "ath"), "\(ath ?? "absent")") {
                try draft.verify(accessToken: token).get()
            }
            #expect(throws: Never.self, "without a token it is ignored") { try draft.verify().get() }
        }
        var draft = ProofDraft()
        draft.set(\.payload, "ath", quoted(hash))
        #expect(throws: Never.self) { try draft.verify(accessToken: token).get() }
    }

    @Test func `the order of members and unknown ones change no thumbprint`() throws {
        let plain = try ProofDraft().verify().get()
        var draft = ProofDraft()
        draft.jwk = Array(draft.jwk.reversed()) + (0..<50).map { ("m\($0)", "\($0)") }
        #expect(try draft.verify().get().thumbprint == plain.thumbprint)
    }

    @Test func `the twin of an ECDSA signature is the same proof`() throws {
        let order: [UInt8] = [
            0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
        ]
        var twin = ProofDraft()
        twin.signature = { signature in
            var borrow = 0
            var s = [UInt8](repeating: 0, count: 32)
            for index in (0..<32).reversed() {
                let difference = Int(order[index]) - Int(signature[32 + index]) - borrow
                borrow = difference < 0 ? 1 : 0
                s[index] = UInt8(truncatingIfNeeded: difference)
            }
            return Array(signature[..<32]) + s
        }
        #expect(try twin.verify().get().id == ProofDraft().verify().get().id)
    }
}

extension Realm {
    fileprivate init(issuer: String) throws {
        let fixture = try Realm.fixture()
        self.init(
            RealmContents(
                id: fixture.id, version: 1, slug: "r", displayName: "R", issuer: issuer, primaryDomain: nil,
                nativeGrantsEnabled: true, policy: fixture.policy, clients: [:], scopes: [:], rateLimits: [:],
                registrationFields: fixture.registrationFields, signingKeys: []))
    }
}
