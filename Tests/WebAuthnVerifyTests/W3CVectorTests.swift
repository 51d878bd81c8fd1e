import Foundation
import Testing
import WebAuthnVerify

@Suite("W3C vectors")
struct W3CVectorTests {
    struct Options: Decodable {
        var rpId: String
        var origins: [String]
        var verify_at: String
        var crossOrigin_allowed_needed: Bool
    }

    struct Registration: Decodable {
        var challenge_hex: String
        var attestationObject_hex: String
        var clientDataJSON_hex: String
        var credential_id_hex: String
        var expected_aaguid_hex: String
        var expected_sign_count: UInt32
        var expected_credential_public_key_cose_hex: String
        var expected_attestation_type: String
        var x5c_count: Int
        var attestation_ca_cert_der_hex: String?
    }

    struct Authentication: Decodable {
        var challenge_hex: String
        var authenticatorData_hex: String
        var clientDataJSON_hex: String
        var signature_hex: String
        var expected_sign_count: UInt32
    }

    struct Case: Decodable {
        var name: String
        var kind: String
        var expected: String
        var fmt: String?
        var options: Options?
        var registration: Registration?
        var authentication: Authentication?
    }

    struct Anchor: Decodable { var cert_der_hex: String }

    struct File: Decodable {
        var attestation_ca: Anchor
        var cases: [Case]
    }

    @Test func `every registration and the authentication after it verify`() async throws {
        guard let file = try VectorFile.load("w3c.json", as: File.self) else { return }
        var count = VectorCount("w3c.json")
        let root = hex(file.attestation_ca.cert_der_hex)
        for vector in file.cases {
            guard let options = vector.options, let registration = vector.registration,
                let authentication = vector.authentication, let instant = date(options.verify_at)
            else {
                count.record(vector.name, vector.kind, expected: true, got: prfOutputsAreExposed())
                continue
            }
            let relyingParty = RelyingParty(
                rpId: options.rpId, origins: Set(options.origins),
                embedding: options.crossOrigin_allowed_needed ? .within(topOrigins: []) : .refused)
            do {
                var credential = try await register(vector, registration, relyingParty, root, instant)
                credential.userHandle = nil
                count.record(vector.name, "registration", expected: true, got: true)
                let verified = try AuthenticationCeremony(
                    relyingParty: relyingParty, challenge: hex(authentication.challenge_hex),
                    userVerification: .preferred, userHandle: .optional, algorithms: .extended
                ).verify(
                    AuthenticationResponseJSON(
                        id: credential.id, clientDataJSON: hex(authentication.clientDataJSON_hex),
                        authenticatorData: hex(authentication.authenticatorData_hex),
                        signature: hex(authentication.signature_hex), userHandle: nil),
                    credential: credential)
                #expect(verified.signCount == authentication.expected_sign_count)
                count.record(vector.name, "authentication", expected: true, got: true)
            } catch {
                count.record(vector.name, vector.kind, expected: true, got: false, detail: "\(error)")
            }
        }
        count.report()
        #expect(count.disagreed.isEmpty)
    }

    private func register(
        _ vector: Case, _ registration: Registration, _ relyingParty: RelyingParty, _ root: [UInt8], _ instant: Date
    ) async throws -> CredentialRecord {
        var anchors: [AttestationStatementFormat: [[UInt8]]] = [:]
        for format in AttestationStatementFormat.allCases { anchors[format] = [root] }
        let verified = try await RegistrationCeremony(
            relyingParty: relyingParty, challenge: hex(registration.challenge_hex),
            pubKeyCredParams: COSEAlgorithmPolicy.extended.accepted, userVerification: .preferred,
            attestation: AttestationPolicy(trustAnchors: anchors)
        ).verify(
            RegistrationResponseJSON(
                id: hex(registration.credential_id_hex), clientDataJSON: hex(registration.clientDataJSON_hex),
                attestationObject: hex(registration.attestationObject_hex)),
            at: instant)
        #expect(verified.format.rawValue == vector.fmt)
        #expect(verified.credential.aaguid == hex(registration.expected_aaguid_hex))
        #expect(verified.credential.signCount == registration.expected_sign_count)
        #expect(verified.credential.publicKey == hex(registration.expected_credential_public_key_cose_hex))
        #expect((verified.trust == .trusted) == (registration.x5c_count > 0), "\(vector.name): \(verified.trust)")
        return verified.credential
    }

    /// The one case that is no ceremony: client extension outputs of `prf`, which the library hands on as it got them.
    private func prfOutputsAreExposed() -> Bool {
        let outputs = #"{"prf":{"enabled":true,"results":{"first":"xBcumC6Ql8OabAy3IMs3W5Lj_K0VSmPkOpPxCWseGXM"}}}"#
        let json = """
            {"id":"AA","rawId":"AA","type":"public-key","clientExtensionResults":\(outputs),
            "response":{"clientDataJSON":"AA","attestationObject":"AA"}}
            """
        let response = try? RegistrationResponseJSON(parsing: Array(json.utf8).span)
        return response?.clientExtensionResults == Array(outputs.utf8)
    }
}

func date(_ text: String) -> Date? {
    ISO8601DateFormatter().date(from: text)
}
