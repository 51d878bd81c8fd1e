import Encoding
import Crypto
import CryptoExtras
import SwiftASN1
import WebAuthnVerify
import X509

extension RegistrationTemplate {
    /// A TPM 2.0 that certifies the credential key (§8.3).
    func tpm(_ signed: [UInt8]) throws -> Statement {
        let pubArea = try publicArea()
        let name = [0x00, 0x0b] + Array(SHA256.hash(data: pubArea))
        let certInfo: [UInt8] =
            [0xff, 0x54, 0x43, 0x47, 0x80, 0x17]  // TPM_GENERATED_VALUE, TPM_ST_ATTEST_CERTIFY
            + Self.sized([]) + Self.sized(Array(SHA256.hash(data: signed)))
            + [UInt8](repeating: 0, count: 17 + 8)  // clockInfo, firmwareVersion
            + Self.sized(name) + Self.sized([])
        let signature = Array(try authority.attestationKey.signature(for: certInfo).derRepresentation)
        return [
            ("ver", .text("2.0")), ("alg", .integer(-7)), ("sig", .bytes(signature)),
            ("x5c", .array([.bytes(try attestationKeyCertificate())])), ("certInfo", .bytes(certInfo)),
            ("pubArea", .bytes(pubArea)),
        ]
    }

    /// `TPMT_PUBLIC` of the credential key: name algorithm SHA-256, no policy, null symmetric cipher and scheme.
    private func publicArea() throws -> [UInt8] {
        let middle: [UInt8] = [0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x10]
        func ecc(_ curve: UInt8, _ point: [UInt8]) -> [UInt8] {
            let half = point.count / 2
            return [0x00, 0x23] + middle + [0x00, curve, 0x00, 0x10]
                + Self.sized(Array(point.prefix(half))) + Self.sized(Array(point.suffix(half)))
        }
        switch credential.key {
        case .p256(let key): return ecc(3, Array(key.publicKey.rawRepresentation))
        case .p384(let key): return ecc(4, Array(key.publicKey.rawRepresentation))
        case .p521(let key): return ecc(5, Array(key.publicKey.rawRepresentation))
        case .rsa(let key, _):
            // 2048 bits, and the default exponent written as zero.
            return [0x00, 0x01] + middle + [0x08, 0x00, 0, 0, 0, 0]
                + Self.sized(Array(try key.publicKey.getKeyPrimitives().modulus))
        default:
            throw SoftwareAuthenticatorError.unsupportedFormat
        }
    }

    /// A certificate as §8.3.1 asks for: no subject, the TPM named in the subject alternative name.
    private func attestationKeyCertificate() throws -> [UInt8] {
        let name = DistinguishedName([
            RelativeDistinguishedName([
                .init(type: [2, 23, 133, 2, 1], utf8String: "id:FFFFF1D0"),
                .init(type: [2, 23, 133, 2, 2], utf8String: "software"),
                .init(type: [2, 23, 133, 2, 3], utf8String: "id:0001"),
            ])
        ])
        return try authority.leaf(
            Certificate.PublicKey(authority.attestationKey.publicKey), subject: DistinguishedName(),
            extensions: [
                Self.notCA, aaguidExtension,
                Certificate.Extension(SubjectAlternativeNames([.directoryName(name)]), critical: true),
                Certificate.Extension(
                    ExtendedKeyUsage([ExtendedKeyUsage.Usage(oid: [2, 23, 133, 8, 3])]), critical: false),
            ])
    }

    /// A `TPM2B`.
    private static func sized(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
    }

    /// A response of the SafetyNet service (§8.5), signed with the credential's key: RSA is all the format knows.
    func androidSafetyNet(_ signed: [UInt8]) throws -> Statement {
        guard case .rsa(let key, _) = credential.key else { throw SoftwareAuthenticatorError.unsupportedFormat }
        let leaf = try authority.leaf(
            Certificate.PublicKey(key.publicKey), subject: AttestationAuthority.packedSubject(),
            extensions: [
                Certificate.Extension(SubjectAlternativeNames([.dnsName("attest.android.com")]), critical: false)
            ])
        let nonce = Self.base64(Array(SHA256.hash(data: signed)))
        let header = Base64.urlEncode(Array(#"{"alg":"RS256","x5c":["\#(Self.base64(leaf))"]}"#.utf8))
        let payload = Base64.urlEncode(Array(#"{"nonce":"\#(nonce)","ctsProfileMatch":true}"#.utf8))
        let input = Array("\(header).\(payload)".utf8)
        let signature = try key.signature(for: SHA256.hash(data: input), padding: .insecurePKCS1v1_5)
        let jws = input + [UInt8(ascii: ".")] + Array(Base64.urlEncode(Array(signature.rawRepresentation)).utf8)
        return [("ver", .text("1")), ("response", .bytes(jws))]
    }

    /// Base64 with padding.
    private static func base64(_ bytes: [UInt8]) -> String {
        let text = Base64.urlEncode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }
}
