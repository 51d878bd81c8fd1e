import Foundation
import SoftwareAuthenticator
import Testing
import WebAuthnVerify

/// One spoiled registration and the step that must notice.
struct RegistrationNegative: CustomTestStringConvertible, Sendable {
    var name: String
    var step: RegistrationStep
    var format: AttestationStatementFormat
    var spoil: @Sendable (inout RegistrationScene) throws -> Void
    var testDescription: String { "step \(step.rawValue): \(name)" }

    init(
        _ step: RegistrationStep, _ name: String, _ format: AttestationStatementFormat = .none,
        _ spoil: @escaping @Sendable (inout RegistrationScene) throws -> Void
    ) {
        self.name = name
        self.step = step
        self.format = format
        self.spoil = spoil
    }

    /// Attested credential data with parts changed.
    private static func attest(
        _ scene: inout RegistrationScene, id: [UInt8]? = nil, key: [UInt8]? = nil
    ) throws {
        let credential = scene.template.credential
        scene.template.credential.id = id ?? credential.id
        scene.template.authenticatorData.attestedCredentialData = AuthenticatorDataTemplate.attested(
            aaguid: scene.template.aaguid, credentialId: id ?? credential.id,
            publicKey: try key ?? credential.key.coseKey(credential.algorithm))
    }

    static let all: [RegistrationNegative] = [
        .init(.clientDataEncoding, "bytes that are not UTF-8") {
            $0.template.clientData.origin = nil
            $0.template.clientData.prefix = [0xff]
        },
        .init(.clientDataSyntax, "a document that is not JSON") { $0.template.clientData.suffix = "," },
        .init(.clientDataSyntax, "a repeated key") { $0.template.clientData.suffix = #","origin":"https://evil""# },
        .init(.clientDataSyntax, "no origin") { $0.template.clientData.origin = nil },
        .init(.type, "an assertion's type") { $0.template.clientData.type = "webauthn.get" },
        .init(.challenge, "another challenge") { $0.ceremony.challenge.append(0) },
        .init(.challenge, "an empty challenge on both sides") {
            $0.ceremony.challenge = []
            $0.template.clientData.challenge = ""
        },
        .init(.origin, "another origin") { $0.template.clientData.origin = "https://evil.example" },
        .init(.crossOrigin, "a frame of another origin") { $0.template.clientData.crossOrigin = true },
        .init(.topOrigin, "a top-level origin") { $0.template.clientData.topOrigin = "https://top.example" },
        .init(.clientDataHash, "a statement over the authenticator data alone", .packed) {
            let template = $0.template
            let signature = try template.credential.key.sign(template.authenticatorData.encoded())
            $0.template.selfAttested = true
            $0.template.editStatement = { $0[1].1 = .bytes(signature) }
        },
        .init(.attestationObject, "bytes after the object") { $0.template.trailing = [0] },
        .init(.attestationObject, "bytes after the authenticator data") {
            $0.template.authenticatorData.trailing = [0]
        },
        .init(.attestationObject, "no attested credential data") {
            $0.template.authenticatorData.flags.remove(.attestedCredentialData)
            $0.template.authenticatorData.attestedCredentialData = []
        },
        .init(.attestationObject, "another credential ID outside") { $0.afterAttesting = { $0.id[0] ^= 1 } },
        .init(.attestationObject, "an empty credential ID") { try attest(&$0, id: []) },
        .init(.attestationObject, "a fourth member") {
            $0.afterAttesting = {
                $0.attestationObject[0] += 1
                $0.attestationObject += [0x61, 0x78, 0x00]
            }
        },
        .init(.attestationObject, "nothing at all") { $0.afterAttesting = { $0.attestationObject = [] } },
        .init(.rpIdHash, "another RP ID") { $0.template.authenticatorData.rpIdHash[0] ^= 1 },
        .init(.userPresent, "UP not set") { $0.template.authenticatorData.flags.remove(.userPresent) },
        .init(.userVerified, "UV not set") { $0.template.authenticatorData.flags.remove(.userVerified) },
        .init(.backupState, "BS without BE") { $0.template.authenticatorData.flags.remove(.backupEligible) },
        .init(.backupEligibilityPolicy, "a passkey that syncs where it may not") { $0.ceremony.backup = .deviceBound },
        .init(.backupStatePolicy, "a passkey that has no copy where it must") {
            $0.ceremony.backup = .backedUp
            $0.template.authenticatorData.flags.remove(.backupState)
        },
        .init(.algorithm, "an algorithm that was not offered") { $0.ceremony.pubKeyCredParams = [.edDSA] },
        .init(.algorithm, "a key that is none") { try attest(&$0, key: [0xa0]) },
        .init(.algorithm, "the private key") {
            let key = try $0.template.credential.key.coseKey(.es256)
            try attest(&$0, key: [0xa6] + key.dropFirst() + [0x23, 0x41, 0x01])
        },
        .init(.algorithm, "an Ed25519 key that is no point") {
            // Of the y-coordinates near any number about half belong to no point; 2 is one of them (RFC 8032 §5.1.3).
            try attest(&$0, key: hex("a401010327200621" + "5820" + "02" + String(repeating: "00", count: 31)))
        },
        .init(.format, "an unknown format") { $0.template.fmt = "nonsense" },
        .init(.format, "capitals") { $0.template.fmt = "NONE" },
        .init(.format, "a trailing blank") { $0.template.fmt = "none " },
        .init(.format, "a format that is not accepted", .packed) { $0.ceremony.attestation.formats = [.none] },
        .init(.attestationStatement, "none with a statement") {
            $0.template.editStatement = { $0 = [("alg", .integer(-7))] }
        },
        .init(.attestationStatement, "a signature by another key", .packed) {
            let other = try SoftwareKey(.es256).sign([])
            $0.template.editStatement = { $0[1].1 = .bytes(other) }
        },
        .init(.trustAnchors, "an anchor of another format", .packed) {
            $0.ceremony.attestation.trustAnchors = [.fidoU2F: [$0.template.authority.root]]
            $0.ceremony.attestation.accepted = [.trusted]
        },
        .init(.trust, "no attestation where one is needed") { $0.ceremony.attestation.accepted = [.trusted] },
        .init(.trust, "self attestation where a chain is needed", .packed) {
            $0.template.selfAttested = true
            $0.ceremony.attestation.accepted = [.trusted]
        },
        .init(.trust, "a chain to an unknown root", .packed) {
            $0.ceremony.attestation.trustAnchors = [.packed: [try AttestationAuthority().root]]
            $0.ceremony.attestation.accepted = [.trusted]
        },
        .init(.credentialIdLength, "a credential ID of 1024 bytes") {
            try attest(&$0, id: [UInt8](repeating: 1, count: 1024))
        },
        .init(.credentialIdUnknown, "a credential that is registered already") {
            $0.ceremony.registeredCredentialIds = [$0.template.credential.id]
        },
        .init(.extensions, "an extension that was not asked for") {
            $0.ceremony.extensions = .only([])
            $0.template.authenticatorData.flags.insert(.extensionData)
            $0.template.authenticatorData.extensions = CBORValue.map([(.text("other"), .bool(true))])
        },
    ]
}

@Suite("Steps of registration (WebAuthn L3 §7.1)")
struct RegistrationStepTests {
    @Test(arguments: RegistrationNegative.all)
    func `a spoiled registration fails at its step`(_ negative: RegistrationNegative) async throws {
        var scene = try RegistrationScene(negative.format)
        try negative.spoil(&scene)
        // The hash is computed, not compared: what is wrong about it shows in the statement.
        let expected =
            negative.step == .clientDataHash
            ? .attestationStatement
            // Anchors are only gathered at step 23; that they do not fit shows at step 24.
            : negative.step == .trustAnchors ? .trust : negative.step
        await #expect {
            try await scene.verify()
        } throws: { ($0 as? RegistrationFailure)?.step == expected }
    }

    @Test(arguments: [
        (RegistrationStep.response, #"{"id":"AA","rawId":"AQ","type":"public-key","response":{}}"#),
        (.response, "null"), (.response, ""), (.response, #"{"id":"","rawId":"","type":"public-key","response":{}}"#),
        (.clientExtensionResults, #"{"clientExtensionResults":[]}"#),
    ])
    func `a response of another shape fails at steps 3 and 4`(_ step: RegistrationStep, _ json: String) {
        let bytes = Array(json.utf8)
        #expect {
            try RegistrationCeremony.response(parsing: bytes.span)
        } throws: { ($0 as? RegistrationFailure)?.step == step }
    }

    @Test func `every step is spoiled at least once`() {
        let covered = Set(RegistrationNegative.all.map(\.step)).union([.response, .clientExtensionResults])
        #expect(covered == Set(RegistrationStep.allCases))
    }

    @Test func `an honest registration yields the record to store, also through JSON`() async throws {
        let scene = try RegistrationScene()
        let json = Array(try scene.template.response().json().utf8)
        let response = try RegistrationCeremony.response(parsing: json.span)
        let verified = try await scene.ceremony.verify(response, at: Ceremonies.instant)
        #expect(verified.credential.id == scene.template.credential.id)
        #expect(verified.credential.publicKey == (try scene.template.credential.key.coseKey(.es256)))
        #expect(verified.credential.transports == ["internal", "hybrid"])
        #expect(
            verified.credential.uvInitialized && verified.credential.backupEligible && verified.credential.backupState)
        #expect(verified.trust == .none && verified.format == .none)
    }

    @Test func `UP may be missing only where creation was conditional`() async throws {
        var scene = try RegistrationScene()
        scene.template.authenticatorData.flags.remove(.userPresent)
        scene.ceremony.requiresUserPresence = false
        #expect(try await scene.verify().flags.contains(.userPresent) == false)
    }

    @Test func `a credential ID of 1023 bytes and a counter of 2^32-1 are accepted`() async throws {
        var scene = try RegistrationScene()
        scene.template.credential.id = [UInt8](repeating: 7, count: 1023)
        scene.template.authenticatorData.signCount = .max
        scene.template.authenticatorData.attestedCredentialData = AuthenticatorDataTemplate.attested(
            aaguid: scene.template.aaguid, credentialId: scene.template.credential.id,
            publicKey: try scene.template.credential.key.coseKey(.es256))
        #expect(try await scene.verify().credential.signCount == .max)
    }
}
