import Encoding
import Crypto
import CryptoExtras
import Foundation
import SoftwareAuthenticator
import Testing
import WebAuthnVerify

/// Project Wycheproof, every file of signatures, verified through COSE keys as a credential would be.
@Suite("Wycheproof")
struct WycheproofTests {
    struct ECKey: Decodable { var uncompressed: String }
    struct EdKey: Decodable { var pk: String }
    struct RSAKey: Decodable {
        var modulus: String
        var publicExponent: String
    }

    /// `publicKey` is an object of its kind, and in the ML-DSA files a hexadecimal text.
    enum Key: Decodable {
        case ec(ECKey), edwards(EdKey), rsa(RSAKey), text(String)

        init(from decoder: any Decoder) throws {
            if let key = try? ECKey(from: decoder) {
                self = .ec(key)
            } else if let key = try? EdKey(from: decoder) {
                self = .edwards(key)
            } else if let key = try? RSAKey(from: decoder) {
                self = .rsa(key)
            } else {
                self = .text(try String(from: decoder))
            }
        }
    }

    struct JWK: Decodable {
        var n: String
        var e: String
    }

    struct Case: Decodable {
        var tcId: Int
        var comment: String
        var flags: [String]?
        var msg: String?
        var sig: String?
        var sig_b64url: String?
        var ctx: String?
        var result: String
    }

    struct Group: Decodable {
        var publicKey: Key?
        var publicKeyAsn: String?
        var keyJwk: JWK?
        var tests: [Case]
    }

    struct File: Decodable { var testGroups: [Group] }

    static let files: [(String, COSEAlgorithmIdentifier)] = [
        ("ecdsa_p256_sha256_p1363", .es256), ("ed25519", .edDSA), ("ed448", .ed448),
        ("rsa_pkcs1_2048_sha256", .rs256), ("rsa_pss_2048_sha256", .ps256), ("rsa_pss_2048_sha384", .ps384),
        ("mldsa_87", .mlDSA87),
    ]

    /// JOSE: tokens are no business of this library.
    static let others: Set<String> = ["jws", "jwk", "jwc"]

    @Test func `no file is passed over in silence`() throws {
        guard let directory = VectorFile.directory?.appendingPathComponent("wycheproof") else { return }
        let known = Set(Self.files.map(\.0)).union(Self.others).union(["mldsa_44"])
        for file in try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil) {
            let name = file.deletingPathExtension().lastPathComponent
            #expect(known.contains(name))
            if Self.others.contains(name) { print("vectors wycheproof/\(name).json: JOSE, not this library's") }
        }
    }

    @Test(arguments: files)
    func `every signature gets its verdict`(_ name: String, _ alg: COSEAlgorithmIdentifier) throws {
        guard let file = try VectorFile.load("wycheproof/\(name).json", as: File.self) else { return }
        var count = VectorCount("wycheproof/\(name).json")
        for group in file.testGroups {
            let key = try coseKey(group, alg).flatMap { (bytes) in
                try? CredentialPublicKey(decoding: bytes.span, policy: .extended)
            }
            for test in group.tests {
                // WebAuthn has no ML-DSA context (RFC 9964), so a signature made with one is none.
                let expected = test.result == "valid" && (test.ctx ?? "").isEmpty
                let got = key.map { verifies(test, $0, alg) } ?? false
                // One signature is "acceptable" (a missing NULL in PKCS #1); ours is the strict answer.
                count.record("#\(test.tcId) \(test.comment)", test.result, expected: expected, got: got)
            }
        }
        count.report()
        #expect(count.disagreed.isEmpty)
    }

    @Test func `ML-DSA-44 is recognised and refused`() throws {
        guard let file = try VectorFile.load("wycheproof/mldsa_44.json", as: File.self) else { return }
        var count = VectorCount("wycheproof/mldsa_44.json")
        for group in file.testGroups {
            guard let bytes = try coseKey(group, .mlDSA44) else { continue }
            for test in group.tests {
                let error = #expect(throws: COSEKeyError.self) {
                    try CredentialPublicKey(decoding: bytes.span, policy: .extended)
                }
                count.record(
                    "#\(test.tcId)", "refused as unsupported", expected: true, got: error == .unsupportedAlgorithm)
            }
        }
        count.report()
        #expect(count.disagreed.isEmpty)
    }

    private func verifies(_ test: Case, _ key: CredentialPublicKey, _ alg: COSEAlgorithmIdentifier) -> Bool {
        guard let signature = test.sig.map({ hex($0) }) ?? test.sig_b64url.flatMap({ Base64.urlDecode($0) }) else {
            return false
        }
        let message = hex(test.msg ?? "")
        guard alg == .es256 else { return key.isValidSignature(signature, for: message) }
        // The file has r ‖ s; WebAuthn has DER. What cannot be put into DER is not a signature.
        guard let parsed = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
        return key.isValidSignature(Array(parsed.derRepresentation), for: message)
    }

    private func coseKey(_ group: Group, _ alg: COSEAlgorithmIdentifier) throws -> [UInt8]? {
        switch group.publicKey {
        case .ec(let key):
            let point = hex(key.uncompressed).dropFirst()
            return CBORValue.map([
                (.integer(1), .integer(2)), (.integer(3), .integer(alg.rawValue)), (.integer(-1), .integer(1)),
                (.integer(-2), .bytes(Array(point.prefix(32)))), (.integer(-3), .bytes(Array(point.suffix(32)))),
            ])
        case .edwards(let key):
            return CBORValue.map([
                (.integer(1), .integer(1)), (.integer(3), .integer(alg.rawValue)),
                (.integer(-1), .integer(alg == .ed448 ? 7 : 6)), (.integer(-2), .bytes(hex(key.pk))),
            ])
        case .text(let pub):
            return CBORValue.map([
                (.integer(1), .integer(7)), (.integer(3), .integer(alg.rawValue)), (.integer(-1), .bytes(hex(pub))),
            ])
        case .rsa(let key):
            return rsa(alg, Array(hex(key.modulus).drop { $0 == 0 }), Array(hex(key.publicExponent).drop { $0 == 0 }))
        case nil:
            // The PKCS #1 file has the key in several encodings; this one is the shortest to read.
            guard let asn = group.publicKeyAsn else { return nil }
            let key = try _RSA.Signing.PublicKey(derRepresentation: hex(asn)).getKeyPrimitives()
            return rsa(alg, Array(key.modulus), Array(key.publicExponent))
        }
    }

    private func rsa(_ alg: COSEAlgorithmIdentifier, _ n: [UInt8], _ e: [UInt8]) -> [UInt8] {
        CBORValue.map([
            (.integer(1), .integer(3)), (.integer(3), .integer(alg.rawValue)),
            (.integer(-1), .bytes(n)), (.integer(-2), .bytes(e)),
        ])
    }
}
