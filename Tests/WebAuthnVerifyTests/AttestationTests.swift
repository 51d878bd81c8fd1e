import Foundation
import SoftwareAuthenticator
import Testing
import WebAuthnVerify

@Suite("Attestation")
struct AttestationTests {
    static let every: [COSEAlgorithmIdentifier] = [
        .es256, .esp256, .es384, .es512, .edDSA, .ed25519, .ed448, .es256K, .rs256, .rs384, .rs512, .ps256, .ps384,
        .ps512,
        .mlDSA65, .mlDSA87,
    ]

    struct Combination: CustomTestStringConvertible, Sendable {
        var format: AttestationStatementFormat
        var algorithm: COSEAlgorithmIdentifier
        var selfAttested = false
        var testDescription: String { "\(format.rawValue)\(selfAttested ? " self" : "") \(algorithm.rawValue)" }
    }

    static let combinations: [Combination] =
        every.map { Combination(format: .none, algorithm: $0) }
        + every.map { Combination(format: .packed, algorithm: $0) }
        + every.map { Combination(format: .packed, algorithm: $0, selfAttested: true) }
        + [.es256, .es384, .es512, .edDSA, .rs256].map { Combination(format: .apple, algorithm: $0) }
        + [.es256, .es384, .rs256, .ps256].map { Combination(format: .androidKey, algorithm: $0) }
        + [.es256, .es384, .es512, .rs256].map { Combination(format: .tpm, algorithm: $0) }
        + [Combination(format: .fidoU2F, algorithm: .es256), Combination(format: .androidSafetyNet, algorithm: .rs256)]

    @Test(arguments: combinations)
    func `what the software authenticator attests is verified`(_ combination: Combination) async throws {
        let scene = try RegistrationScene(
            combination.format, algorithm: combination.algorithm, selfAttested: combination.selfAttested)
        let verified = try await scene.verify()
        #expect(verified.algorithm == combination.algorithm)
        let expected: AttestationTrust =
            combination.format == .none ? .none : combination.selfAttested ? .selfAttested : .trusted
        #expect(verified.trust == expected)
    }

    /// A format and what spoils its statement.
    struct Spoiled: CustomTestStringConvertible, Sendable {
        var format: AttestationStatementFormat
        var name: String
        var error: AttestationError
        var selfAttested = false
        var algorithm: COSEAlgorithmIdentifier = .es256
        var spoil: @Sendable (inout [(String, CBORValue)]) -> Void
        var testDescription: String { "\(format.rawValue): \(name)" }
    }

    static let spoiled: [Spoiled] = [
        Spoiled(format: .packed, name: "empty", error: .malformedStatement) { $0 = [] },
        Spoiled(format: .packed, name: "no alg", error: .malformedStatement) { $0.remove(at: 0) },
        Spoiled(format: .packed, name: "alg as text", error: .malformedStatement) { $0[0].1 = .text("ES256") },
        Spoiled(format: .packed, name: "no sig", error: .malformedStatement) { $0.remove(at: 1) },
        Spoiled(format: .packed, name: "empty sig", error: .malformedStatement) { $0[1].1 = .bytes([]) },
        Spoiled(format: .packed, name: "sig as text", error: .malformedStatement) { $0[1].1 = .text("") },
        Spoiled(format: .packed, name: "wrong sig", error: .invalidSignature) { $0[1].1 = .bytes([1]) },
        Spoiled(format: .packed, name: "empty x5c", error: .malformedStatement) { $0[2].1 = .array([]) },
        Spoiled(format: .packed, name: "nine certificates", error: .malformedStatement) {
            $0[2].1 = .array([CBORValue](repeating: .bytes([0x30, 0x00]), count: 9))
        },
        Spoiled(format: .packed, name: "x5c that is no certificate", error: .malformedCertificate) {
            $0[2].1 = .array([.bytes([0x30, 0x00])])
        },
        Spoiled(format: .packed, name: "another algorithm", error: .algorithmMismatch) { $0[0].1 = .integer(-257) },
        Spoiled(format: .packed, name: "surplus member", error: .malformedStatement) {
            $0.append(("ecdaaKeyId", .bytes([])))
        },
        Spoiled(format: .packed, name: "self with another algorithm", error: .algorithmMismatch, selfAttested: true) {
            $0[0].1 = .integer(-9)
        },
        Spoiled(format: .packed, name: "self with a wrong sig", error: .invalidSignature, selfAttested: true) {
            $0[1].1 = .bytes([1])
        },
        Spoiled(format: .fidoU2F, name: "wrong sig", error: .invalidSignature) { $0[0].1 = .bytes([1]) },
        Spoiled(format: .fidoU2F, name: "two certificates", error: .malformedStatement) { (statement) in
            let leaf = statement[1].1.elements ?? []
            statement[1].1 = .array(leaf + leaf)
        },
        Spoiled(format: .apple, name: "surplus member", error: .malformedStatement) { $0.append(("sig", .bytes([1]))) },
        Spoiled(format: .androidKey, name: "wrong sig", error: .invalidSignature) { $0[1].1 = .bytes([1]) },
        Spoiled(format: .androidKey, name: "another algorithm", error: .algorithmMismatch) { $0[0].1 = .integer(-35) },
        Spoiled(format: .tpm, name: "another version", error: .malformedStatement) { $0[0].1 = .text("1.2") },
        Spoiled(format: .tpm, name: "wrong sig", error: .invalidSignature) { $0[2].1 = .bytes([1]) },
        Spoiled(format: .tpm, name: "SHA-1", error: .algorithmMismatch) { $0[1].1 = .integer(-65535) },
        Spoiled(format: .tpm, name: "magic", error: .malformedTPMStructure) { editBytes(&$0[4].1) { $0[0] ^= 1 } },
        Spoiled(format: .tpm, name: "type", error: .malformedTPMStructure) { editBytes(&$0[4].1) { $0[5] ^= 1 } },
        Spoiled(format: .tpm, name: "extraData", error: .nonceMismatch) { editBytes(&$0[4].1) { $0[10] ^= 1 } },
        Spoiled(format: .tpm, name: "name", error: .publicKeyMismatch) {
            editBytes(&$0[4].1) { $0[$0.count - 3] ^= 1 }
        },
        Spoiled(format: .tpm, name: "clock", error: .invalidSignature) { editBytes(&$0[4].1) { $0[45] ^= 1 } },
        Spoiled(format: .tpm, name: "trailing byte", error: .malformedTPMStructure) {
            editBytes(&$0[4].1) { $0.append(0) }
        },
        Spoiled(format: .tpm, name: "key", error: .publicKeyMismatch) { editBytes(&$0[5].1) { $0[$0.count - 1] ^= 1 } },
        Spoiled(format: .tpm, name: "attributes", error: .publicKeyMismatch) { editBytes(&$0[5].1) { $0[7] ^= 1 } },
        Spoiled(format: .tpm, name: "truncated key", error: .malformedTPMStructure) {
            editBytes(&$0[5].1) { $0.removeLast() }
        },
        Spoiled(format: .androidSafetyNet, name: "no JWS", error: .malformedStatement, algorithm: .rs256) {
            $0[1].1 = .bytes(Array("a.b".utf8))
        },
        Spoiled(format: .androidSafetyNet, name: "wrong signature", error: .invalidSignature, algorithm: .rs256) {
            editBytes(&$0[1].1) { $0[$0.count - 5] = $0[$0.count - 5] == 0x41 ? 0x42 : 0x41 }
        },
    ]

    private static func editBytes(_ value: inout CBORValue, _ edit: (inout [UInt8]) -> Void) {
        guard var bytes = value.byteString else { return }
        edit(&bytes)
        value = .bytes(bytes)
    }

    @Test(arguments: spoiled)
    func `a spoiled statement is refused for what is wrong with it`(_ spoiled: Spoiled) async throws {
        var scene = try RegistrationScene(
            spoiled.format, algorithm: spoiled.algorithm, selfAttested: spoiled.selfAttested)
        scene.template.editStatement = spoiled.spoil
        await #expect(throws: RegistrationFailure(.attestationStatement, .attestation(spoiled.error))) {
            try await scene.verify()
        }
    }

    @Test(arguments: [AttestationStatementFormat.packed, .tpm, .fidoU2F])
    func `an AAGUID the certificate does not name is refused`(_ format: AttestationStatementFormat) async throws {
        var scene = try RegistrationScene(format)
        let credential = scene.template.credential
        scene.template.authenticatorData.attestedCredentialData = AuthenticatorDataTemplate.attested(
            aaguid: [UInt8](repeating: 9, count: 16), credentialId: credential.id,
            publicKey: try credential.key.coseKey(.es256))
        await #expect(throws: RegistrationFailure(.attestationStatement, .attestation(.aaguidMismatch))) {
            try await scene.verify()
        }
    }

    @Test(arguments: [AttestationStatementFormat.apple, .androidKey])
    func `a statement about other client data is refused`(_ format: AttestationStatementFormat) async throws {
        var scene = try RegistrationScene(format)
        scene.afterAttesting = { $0.clientDataJSON.insert(0x20, at: 1) }
        await #expect {
            try await scene.verify()
        } throws: { ($0 as? RegistrationFailure)?.step == .attestationStatement }
    }

    @Test func `a chain is trusted only while its certificates are valid`() async throws {
        let scene = try RegistrationScene(.packed)
        let response = try scene.template.response()
        for (instant, trust) in [
            (1_600_000_000.0, AttestationTrust.untrusted), (1_800_000_000, .trusted), (2_700_000_000, .untrusted),
        ] {
            let verified = try await scene.ceremony.verify(response, at: .init(timeIntervalSince1970: instant))
            #expect(verified.trust == trust)
        }
    }

    @Test func `without anchors a correct chain is untrusted and accepted by default`() async throws {
        var scene = try RegistrationScene(.packed)
        scene.ceremony.attestation = AttestationPolicy()
        #expect(try await scene.verify().trust == .untrusted)
    }
}
