import SoftwareAuthenticator
import Testing
import WebAuthnVerify

/// One spoiled authentication and the step that must notice.
struct AuthenticationNegative: CustomTestStringConvertible, Sendable {
    var name: String
    var step: AuthenticationStep
    var spoil: @Sendable (inout AuthenticationScene) throws -> Void
    var testDescription: String { "step \(step.rawValue): \(name)" }

    init(
        _ step: AuthenticationStep, _ name: String,
        _ spoil: @escaping @Sendable (inout AuthenticationScene) throws -> Void
    ) {
        self.name = name
        self.step = step
        self.spoil = spoil
    }

    static let all: [AuthenticationNegative] = [
        .init(.allowCredentials, "another credential was asked for") { $0.ceremony.allowCredentials = [[1, 2, 3]] },
        .init(.userHandle, "no user handle") { $0.afterSigning = { $0.userHandle = nil } },
        .init(.userHandle, "an empty user handle") { $0.afterSigning = { $0.userHandle = [] } },
        .init(.userHandle, "an empty user handle for a record without one") {
            $0.record.userHandle = nil
            $0.afterSigning = { $0.userHandle = [] }
        },
        .init(.userHandle, "another user's handle") { $0.afterSigning = { $0.userHandle = [1] } },
        .init(.userHandle, "a record of another credential") { $0.record.id = [9] },
        .init(.authenticatorData, "36 bytes") { $0.afterSigning = { $0.authenticatorData.removeLast() } },
        .init(.authenticatorData, "trailing byte") { $0.template.authenticatorData.trailing = [0] },
        .init(.authenticatorData, "AT without attested data") {
            $0.template.authenticatorData.flags.insert(.attestedCredentialData)
        },
        .init(.authenticatorData, "ED without extensions") {
            $0.template.authenticatorData.flags.insert(.extensionData)
        },
        .init(.authenticatorData, "extensions that are no map") {
            $0.template.authenticatorData.flags.insert(.extensionData)
            $0.template.authenticatorData.extensions = [0x80]
        },
        .init(.clientDataEncoding, "bytes that are not UTF-8") {
            $0.template.clientData.origin = nil; $0.template.clientData.prefix = [0xff]
        },
        .init(.clientDataSyntax, "a document that is not JSON") { $0.template.clientData.suffix = "," },
        .init(.clientDataSyntax, "a repeated key") { $0.template.clientData.suffix = #","type":"webauthn.get""# },
        .init(.clientDataSyntax, "no challenge") { $0.template.clientData.challenge = nil },
        .init(.clientDataSyntax, "a token binding of unknown status") {
            $0.template.clientData.suffix = #","tokenBinding":{"status":"maybe"}"#
        },
        .init(.clientDataSyntax, "a token binding that is a string") {
            $0.template.clientData.suffix = #","tokenBinding":"present""#
        },
        .init(.type, "a registration's type") { $0.template.clientData.type = "webauthn.create" },
        .init(.type, "a payment's type") { $0.template.clientData.type = "payment.get" },
        .init(.challenge, "another challenge") { $0.ceremony.challenge[0] ^= 1 },
        .init(.challenge, "an empty challenge on both sides") {
            $0.ceremony.challenge = []
            $0.template.clientData.challenge = ""
        },
        .init(.challenge, "the challenge with padding") { $0.template.clientData.challenge? += "=" },
        .init(.origin, "http") { $0.template.clientData.origin = "http://login.example" },
        .init(.origin, "a trailing slash") { $0.template.clientData.origin = "https://login.example/" },
        .init(.origin, "capitals") { $0.template.clientData.origin = "https://LOGIN.example" },
        .init(.origin, "a port") { $0.template.clientData.origin = "https://login.example:8443" },
        .init(.origin, "a subdomain") { $0.template.clientData.origin = "https://a.login.example" },
        .init(.origin, "a suffix") { $0.template.clientData.origin = "https://login.example.evil" },
        .init(.origin, "a letter that is only canonically the same") {
            $0.ceremony.relyingParty.origins = ["android:apk-key-hash:K"]
            $0.template.clientData.origin = "android:apk-key-hash:\u{212a}"
        },
        .init(.crossOrigin, "a frame of another origin") { $0.template.clientData.crossOrigin = true },
        .init(.topOrigin, "a top-level origin where none is expected") {
            $0.template.clientData.topOrigin = "https://top.example"
        },
        .init(.topOrigin, "an unexpected top-level origin") {
            $0.ceremony.relyingParty.embedding = .within(topOrigins: ["https://top.example"])
            $0.template.clientData.crossOrigin = true
            $0.template.clientData.topOrigin = "https://other.example"
        },
        .init(.rpIdHash, "another RP ID") { $0.ceremony.relyingParty.rpIdHash[31] ^= 1 },
        .init(.userPresent, "UP not set") { $0.template.authenticatorData.flags.remove(.userPresent) },
        .init(.userVerified, "UV not set") { $0.template.authenticatorData.flags.remove(.userVerified) },
        .init(.backupState, "BS without BE") {
            $0.template.authenticatorData.flags.remove(.backupEligible)
            $0.record.backupEligible = false
        },
        .init(.backupEligible, "BE that was not set at registration") { $0.record.backupEligible = false },
        .init(.clientDataHash, "a signature over the authenticator data alone") {
            let template = $0.template
            let signature = try template.credential.key.sign(template.authenticatorData.encoded())
            $0.afterSigning = { $0.signature = signature }
        },
        .init(.signature, "a bit of the signature") { $0.afterSigning = { $0.signature[10] ^= 1 } },
        .init(.signature, "another key") { $0.record.publicKey = try SoftwareKey(.es256).coseKey(.es256) },
        .init(.signature, "a stored key that is none") { $0.record.publicKey = [0xa0] },
        .init(.signature, "client data written again") { scene in
            scene.afterSigning = { $0.clientDataJSON.append(0x20) }
        },
        .init(.signCount, "the same counter") {
            $0.record.signCount = 7
            $0.template.authenticatorData.signCount = 7
        },
        .init(.signCount, "a lower counter") {
            $0.record.signCount = 7
            $0.template.authenticatorData.signCount = 6
        },
        .init(.signCount, "zero after a counter") { $0.record.signCount = .max },
        .init(.extensions, "an extension that was not asked for") {
            $0.ceremony.extensions = .only(["credProtect"])
            $0.template.authenticatorData.flags.insert(.extensionData)
            $0.template.authenticatorData.extensions = CBORValue.map([(.text("other"), .bool(true))])
        },
    ]
}

@Suite("Steps of authentication (WebAuthn L3 §7.2)")
struct AuthenticationStepTests {
    @Test(arguments: AuthenticationNegative.all)
    func `a spoiled assertion fails at its step`(_ negative: AuthenticationNegative) throws {
        var scene = try AuthenticationScene()
        try negative.spoil(&scene)
        // The hash is computed, not compared: what is wrong about it shows in the signature.
        let expected = negative.step == .clientDataHash ? .signature : negative.step
        #expect {
            try scene.verify()
        } throws: { ($0 as? AuthenticationFailure)?.step == expected }
    }

    @Test(arguments: [
        (AuthenticationStep.response, #"{"id":"AA","rawId":"AQ","type":"public-key","response":{}}"#),
        (.response, "[]"), (.response, ""), (.response, #"{"id":"AA","rawId":"AA","type":"public-key"}"#),
        (.clientExtensionResults, #"{"clientExtensionResults":1}"#),
        (.clientExtensionResults, #"{"clientExtensionResults":[]}"#),
    ])
    func `a response of another shape fails at steps 3 and 4`(_ step: AuthenticationStep, _ json: String) {
        let bytes = Array(json.utf8)
        #expect {
            try AuthenticationCeremony.response(parsing: bytes.span)
        } throws: { ($0 as? AuthenticationFailure)?.step == step }
    }

    @Test func `a counter is stored as the higher of the two, so a zero never lowers it`() throws {
        var scene = try AuthenticationScene()
        scene.ceremony.signCountPolicy = .report
        scene.record.signCount = 5
        let verified = try scene.verify()
        #expect(verified.signCount == 5)
        #expect(verified.signCountRegressed)
        scene.template.authenticatorData.signCount = 6
        #expect(try scene.verify().signCount == 6)
    }

    @Test func `every step is spoiled at least once`() {
        let covered = Set(AuthenticationNegative.all.map(\.step))
            .union([.response, .clientExtensionResults, .credentialRecordUpdate])
        #expect(covered == Set(AuthenticationStep.allCases))
    }

    @Test func `an honest assertion passes, also through JSON`() throws {
        let scene = try AuthenticationScene()
        let json = Array(try scene.template.response().json().utf8)
        let response = try AuthenticationCeremony.response(parsing: json.span)
        let verified = try scene.ceremony.verify(response, credential: scene.record)
        #expect(verified.userVerified && verified.userHandle == Ceremonies.userHandle && verified.backupState)
        #expect(verified.origin == Ceremonies.origin && verified.signCount == 0)
    }

    @Test func `what is tolerated is handed on`() throws {
        var scene = try AuthenticationScene()
        scene.template.authenticatorData.flags.insert(.extensionData)
        scene.template.authenticatorData.extensions = CBORValue.map([(.text("hmac-secret"), .bytes([1]))])
        scene.template.clientData.prefix = [0xef, 0xbb, 0xbf, 0x20, 0x0a]
        scene.template.clientData.suffix = #","tokenBinding":{"status":"present","id":"x"},"new":{"a":[1,2e9,null]}"#
        #expect(try scene.verify().extensions?["hmac-secret"] == .bytes([1]))
        scene.ceremony.relyingParty.embedding = .within(topOrigins: ["https://top.example"])
        scene.template.clientData.crossOrigin = true
        scene.template.clientData.topOrigin = "https://top.example"
        #expect(throws: Never.self) { try scene.verify() }
    }

    @Test func `a decoy record fails where a bad signature does, and its key is a real one`() throws {
        let scene = try AuthenticationScene()
        let response = try scene.template.response()
        let decoy = CredentialRecord.decoy(for: response)
        #expect(throws: Never.self) { try CredentialPublicKey(decoding: decoy.publicKey.span) }
        #expect(throws: AuthenticationFailure(.signature, .invalidSignature)) {
            try scene.ceremony.verify(response, credential: decoy)
        }
    }

    @Test func `no flip of any signed bit goes unnoticed`() throws {
        let scene = try AuthenticationScene()
        let response = try scene.template.response()
        for bit in 0..<(response.authenticatorData.count * 8) {
            var spoiled = response
            spoiled.authenticatorData[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: AuthenticationFailure.self) { try scene.ceremony.verify(spoiled, credential: scene.record) }
        }
        for bit in 0..<(response.clientDataJSON.count * 8) {
            var spoiled = response
            spoiled.clientDataJSON[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: AuthenticationFailure.self) { try scene.ceremony.verify(spoiled, credential: scene.record) }
        }
        for bit in 0..<(response.signature.count * 8) {
            var spoiled = response
            spoiled.signature[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: AuthenticationFailure.self) { try scene.ceremony.verify(spoiled, credential: scene.record) }
        }
    }
}
