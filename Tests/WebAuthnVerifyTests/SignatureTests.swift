import Crypto
import SoftwareAuthenticator
import Testing
import WebAuthnVerify

@Suite("Signatures")
struct SignatureTests {
    /// A P-256 signature taken apart, to be put together wrongly.
    struct Parts {
        let key: CredentialPublicKey
        let message: [UInt8] = Array("message".utf8)
        let r: [UInt8]
        let s: [UInt8]

        init() throws {
            let privateKey = P256.Signing.PrivateKey()
            let cose = try SoftwareKey.p256(privateKey).coseKey(.es256)
            key = try CredentialPublicKey(decoding: cose.span)
            let raw = Array(try privateKey.signature(for: message).rawRepresentation)
            r = Array(raw.prefix(32))
            s = Array(raw.suffix(32))
        }

        static func integer(_ bytes: [UInt8]) -> [UInt8] {
            var content = Array(bytes.drop { $0 == 0 })
            if content.first.map({ $0 >= 0x80 }) ?? true { content.insert(0, at: 0) }
            return [0x02, UInt8(content.count)] + content
        }

        static func sequence(_ content: [UInt8]) -> [UInt8] { [0x30, UInt8(content.count)] + content }

        func verifies(_ signature: [UInt8]) -> Bool { key.isValidSignature(signature, for: message) }
    }

    /// n of P-256 (SEC 2 §2.4.2).
    static let order = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")

    @Test func `ECDSA signatures are strict DER with r and s between 1 and n-1`() throws {
        let parts = try Parts()
        let r = Parts.integer(parts.r), s = Parts.integer(parts.s)
        #expect(parts.verifies(Parts.sequence(r + s)))
        let zero: [UInt8] = [0x02, 0x01, 0x00], n = Parts.integer(Self.order)
        let spoiled: [[UInt8]] = [
            [], [0x30, 0x00], Parts.sequence(zero + s), Parts.sequence(r + zero), Parts.sequence(zero + zero),
            Parts.sequence(n + s), Parts.sequence(r + n), Parts.sequence(n + n), Parts.sequence(r),
            Parts.sequence(r + s) + [0x00], Parts.sequence(r + s + [0x05, 0x00]), Parts.sequence(s + r),
            // P1363 instead of DER.
            parts.r + parts.s,
            // A leading zero that is not needed, or one that is missing.
            Parts.sequence([0x02, 0x22, 0x00, 0x00] + parts.r.suffix(32) + s),
            Parts.sequence([0x02, 0x21, 0x80] + parts.r + s),
            // Long-form and indefinite lengths.
            [0x30, 0x81, UInt8((r + s).count)] + r + s, [0x30, 0x80] + r + s + [0x00, 0x00],
            Parts.sequence([0x02, 0x81] + r.dropFirst() + s),
            // Other tags.
            [0x31] + Parts.sequence(r + s).dropFirst(), Parts.sequence([0x03] + r.dropFirst() + s),
            Parts.sequence(Parts.integer([0xff] + parts.r) + s),
        ]
        for signature in spoiled { #expect(!parts.verifies(signature), "\(signature)") }
        for length in 0..<Parts.sequence(r + s).count {
            #expect(!parts.verifies(Array(Parts.sequence(r + s).prefix(length))))
        }
    }

    @Test func `a signature with n-s in place of s is valid`() throws {
        let parts = try Parts()
        var difference = [UInt8](repeating: 0, count: 32), borrow = 0
        for index in (0..<32).reversed() {
            let value = Int(Self.order[index]) - Int(parts.s[index]) - borrow
            difference[index] = UInt8(truncatingIfNeeded: value)
            borrow = value < 0 ? 1 : 0
        }
        #expect(parts.verifies(Parts.sequence(Parts.integer(parts.r) + Parts.integer(difference))))
    }

    @Test(arguments: [
        COSEAlgorithmIdentifier.es256, .esp256, .es384, .esp384, .es512, .esp512, .edDSA, .ed25519, .ed448, .es256K,
        .rs256,
        .rs384, .rs512, .ps256, .ps384, .ps512, .mlDSA65, .mlDSA87,
    ])
    func `an assertion verifies under its algorithm and fails with one bit changed`(_ alg: COSEAlgorithmIdentifier)
        throws
    {
        var scene = try AuthenticationScene(alg)
        #expect(throws: Never.self) { try scene.verify() }
        scene.afterSigning = { $0.signature[$0.signature.count / 2] ^= 0x10 }
        #expect(throws: AuthenticationFailure(.signature, .invalidSignature)) { try scene.verify() }
        scene.afterSigning = { $0.signature.append(0) }
        #expect(throws: AuthenticationFailure(.signature, .invalidSignature)) { try scene.verify() }
        scene.afterSigning = { $0.signature = [] }
        #expect(throws: AuthenticationFailure(.signature, .invalidSignature)) { try scene.verify() }
    }
}
