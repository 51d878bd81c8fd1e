import Encoding
import Foundation
@testable import Grants
import Testing

@Suite("Signatures of proofs")
struct DPoPVectorTests {
    private struct File: Decodable {
        struct Group: Decodable {
            struct Test: Decodable {
                let tcId: Int
                let comment: String
                let msg: String
                let sig: String
                let result: String
            }
            struct Key: Decodable {
                let modulus: String?
                let publicExponent: String?
                let uncompressed: String?
            }
            let publicKey: Key
            let publicKeyJwk: ClientKey?
            let tests: [Test]

            /// The key as a proof has it; not each group brings it in this form.
            var jwk: [ProofKey.Member] {
                func unsigned(_ hex: String?) -> [UInt8] { Array((hex.flatMap(Hex.decode) ?? []).drop { $0 == 0 }) }
                if let point = publicKey.uncompressed.flatMap(Hex.decode), point.count == 65 {
                    return ProofKey.ec(Array(point[1..<33]), Array(point[33...]))
                }
                if let x = publicKeyJwk?.x.flatMap({ Base64.urlDecode($0) }) { return ProofKey.okp(x) }
                return ProofKey.rsa(
                    modulus: unsigned(publicKey.modulus), exponent: unsigned(publicKey.publicExponent))
            }
        }
        let testGroups: [Group]
    }

    @Test(arguments: [
        ("ecdsa_p256_sha256_p1363", ClientKey.Algorithm.es256), ("ed25519", .edDSA), ("rsa_pss_2048_sha256", .ps256),
        ("rsa_pkcs1_2048_sha256", .rs256),
    ])
    func `each vector of Wycheproof gets its verdict`(_ name: String, _ algorithm: ClientKey.Algorithm) throws {
        guard let file = try VectorFile.load("wycheproof/\(name).json", as: File.self) else { return }
        var counts: [String: Int] = [:]
        for group in file.testGroups {
            let key = JOSEObject(Array(ProofDraft.object(group.jwk).utf8)).flatMap { PublicJWK($0, algorithm) }
            for test in group.tests {
                guard let message = Hex.decode(test.msg), let signature = Hex.decode(test.sig) else { continue }
                let got = key?.material.isValidJWSSignature(signature, for: message) ?? false
                // One signature is "acceptable" (a missing NULL in PKCS #1); ours is the strict answer.
                #expect(got == (test.result == "valid"), "\(name) #\(test.tcId) \(test.comment)")
                counts[test.result, default: 0] += 1
            }
        }
        print("vectors wycheproof/\(name).json as signatures of proofs: \(counts)")
        #expect(counts["valid", default: 0] > 5 && counts["invalid", default: 0] > 10)
    }
}
