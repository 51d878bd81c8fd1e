import Encoding
import Crypto
import Foundation
@testable import Grants
import Persistence
import Testing

@Suite("Client assertions")
struct ClientAssertionTests {
    private static let now = 1_800_000_000.0
    private static let audience = "https://r.example"
    private let key = P256.Signing.PrivateKey()

    private var jwk: ClientKey {
        let point = key.publicKey.rawRepresentation
        return ClientKey(
            kty: "EC", crv: "P-256", x: Base64.urlEncode(point.prefix(32)), y: Base64.urlEncode(point.suffix(32)),
            n: nil, e: nil, kid: "k", alg: nil)
    }

    private func assertion(
        header: String = #"{"alg":"ES256","kid":"k"}"#, _ claims: String? = nil, exp: Double = 60
    ) throws -> String {
        let payload =
            claims
            ?? #"{"iss":"api","sub":"api","aud":"\#(Self.audience)","jti":"1","exp":\#(Int(Self.now + exp))}"#
        let input = Base64.urlEncode(Array(header.utf8)) + "." + Base64.urlEncode(Array(payload.utf8))
        return input + "." + Base64.urlEncode(try key.signature(for: Array(input.utf8)).rawRepresentation)
    }

    private func verdict(_ text: String) -> Result<ClientAssertion.Use, ClientAssertion.Refusal>? {
        ClientAssertion(text)?.verify(
            for: .fixture("api", keys: [jwk]), audiences: [Self.audience], now: Self.now)
    }

    @Test func `a good one is used up under its client and identifier until a while after its end`() throws {
        let use = try #require(try verdict(try assertion())?.get())
        #expect(use.id.count == 32)
        #expect(use.expiresAt == Self.now + 60 + ClientAssertion.memory)
    }

    @Test(
        "it ends, with half a minute's grace, and may not end more than ten minutes ahead",
        arguments: [(-29.0, true), (-31, false), (629, true), (631, false)])
    func expiry(_ exp: Double, _ holds: Bool) throws {
        #expect(((try? verdict(try assertion(exp: exp))?.get()) != nil) == holds)
    }

    @Test func `each byte of it counts`() throws {
        let good = Array(try assertion().utf8)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        for index in good.indices where good[index] != UInt8(ascii: ".") {
            var changed = good
            let place = alphabet.firstIndex(of: good[index]) ?? 0
            changed[index] = alphabet[(place + 1) % 64]
            let holds = (try? verdict(String(decoding: changed, as: UTF8.self))?.get()) != nil
            #expect(!holds, "changed at \(index)")
        }
    }

    @Test(
        "headers that change the meaning of a signature are refused",
        arguments: [
            #"{"alg":"ES256","crit":["exp"]}"#, #"{"alg":"ES256","b64":false}"#, #"{"alg":"ES256","crit":null}"#,
            #"{"alg":"ES256","b64":null}"#, #"{"alg":"ES256","kid":null}"#, #"{"alg":"ES256","typ":7}"#,
            #"{"alg":"none"}"#,
            #"{"alg":"HS256"}"#,
            #"{"alg":"ES256","alg":"ES256"}"#, #"{"kid":"k"}"#, #"{"alg":["ES256"]}"#, "[]", "",
        ])
    func headers(_ header: String) throws {
        #expect(ClientAssertion(try assertion(header: header)) == nil)
    }

    @Test(
        "claims are read strictly",
        arguments: [
            #"{"iss":"api","sub":"api","aud":"https://r.example","jti":"1","exp":1e12}"#,
            #"{"iss":"api","sub":"api","aud":"https://r.example","jti":"1","exp":"1800000060"}"#,
            #"{"iss":"api","sub":"api","sub":"api","aud":"https://r.example","jti":"1","exp":1800000060}"#,
            #"{"iss":"api","sub":"other","aud":"https://r.example","jti":"1","exp":1800000060}"#,
            #"{"iss":"api","sub":"api","aud":"https://r.example","jti":"1","exp":1800000060,"nbf":null}"#,
            #"{"iss":"api","sub":"api","aud":{"a":1},"jti":"1","exp":1800000060}"#,
            #"{"iss":"api","sub":"api","aud":"https://r.example","jti":"1","exp":1800000060}x"#,
        ])
    func claims(_ claims: String) throws {
        #expect(ClientAssertion(try assertion(claims)) == nil)
    }
}

@Suite("JSON Web Signatures")
struct RegisteredJWSTests {
    private struct File: Decodable {
        struct Group: Decodable {
            struct Test: Decodable {
                let tcId: Int
                let jws: String
                let result: String
                let comment: String
            }
            let comment: String
            let `public`: ClientKey?
            let tests: [Test]
        }
        let testGroups: [Group]
    }

    /// Whether the header names an algorithm in which clients may sign.
    private static func isOurs(_ jws: String) -> Bool {
        struct Header: Decodable {
            let alg: String?
        }
        guard let bytes = Base64.urlDecode(jws.prefix { $0 != "." }),
            let header = try? JSONDecoder().decode(Header.self, from: Data(bytes))
        else { return false }
        return header.alg.flatMap(ClientKey.Algorithm.init) != nil
    }

    @Test func `Wycheproof: what is invalid is refused, and what is valid in our algorithms is accepted`() throws {
        guard let file = try VectorFile.load("wycheproof/jws.json", as: File.self) else { return }
        var accepted = 0, refused = 0, disagreed: [String] = []
        for group in file.testGroups {
            // A key for encryption is refused when it is registered (postern.jwk_refusal), not when it is used.
            for test in group.tests where !group.comment.contains("encryption") {
                let valid = test.result == "valid" && group.public != nil && Self.isOurs(test.jws)
                let got = RegisteredJWS(test.jws)?.isSigned(by: group.public.map { [$0] } ?? []) ?? false
                if got != valid {
                    disagreed.append("\(group.comment) \(test.tcId) \(test.comment)")
                } else if got {
                    accepted += 1
                } else {
                    refused += 1
                }
            }
        }
        print(
            "vectors wycheproof/jws.json: \(accepted) accepted, \(refused) refused, \(disagreed.count) not as expected")
        for line in disagreed { print("  \(line)") }
        #expect(accepted > 0 && refused > 300)
        #expect(disagreed.isEmpty)
    }
}
