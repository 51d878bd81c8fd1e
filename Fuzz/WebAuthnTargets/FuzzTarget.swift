import Crypto
import SoftwareAuthenticator
import WebAuthnVerify

/// What can be fuzzed: each target takes any bytes, must neither trap nor take long, and checks what must hold
/// afterwards.
///
/// The fuzzer and the tests that replay its corpora run the same functions.
public enum FuzzTarget: String, CaseIterable, Sendable {
    case cbor, cose, authenticatorData, clientDataJSON, attestationObject, assertion, registration

    /// Runs the target. - Returns: what does not hold, or nil.
    public func run(_ bytes: [UInt8]) -> String? {
        switch self {
        case .cbor: Self.cbor(bytes)
        case .cose: Self.cose(bytes)
        case .authenticatorData: Self.authenticatorData(bytes)
        case .clientDataJSON: Self.clientDataJSON(bytes)
        case .attestationObject: Self.attestationObject(bytes)
        case .assertion: Self.assertion(bytes)
        case .registration: Self.registration(bytes)
        }
    }

    /// Canonical items have one encoding: what the strict reader accepts, our encoder writes back byte for byte.
    private static func cbor(_ bytes: [UInt8]) -> String? {
        guard let value = try? CBORValue(parsing: bytes.span) else {
            let strict = try? CBORValue(parsing: bytes.span, keyOrder: .canonical)
            return strict == nil ? nil : "canonical accepted what any order refuses"
        }
        guard let strict = try? CBORValue(parsing: bytes.span, keyOrder: .canonical) else {
            let again = try? CBORValue(parsing: value.encoded().span, keyOrder: .canonical)
            return again == nil ? "sorted keys are refused" : nil
        }
        return strict == value && strict.encoded() == bytes ? nil : "a canonical item has two encodings"
    }

    private static func cose(_ bytes: [UInt8]) -> String? {
        guard let key = try? CredentialPublicKey(decoding: bytes.span, policy: .extended) else { return nil }
        return key.isValidSignature([], for: bytes) ? "an empty signature is valid" : nil
    }

    private static func authenticatorData(_ bytes: [UInt8]) -> String? {
        guard let data = try? AuthenticatorData(parsing: bytes.span) else { return nil }
        guard data.rpIdHash.count == 32,
            (data.attestedCredentialData != nil) == data.flags.contains(.attestedCredentialData),
            (data.extensions != nil) == data.flags.contains(.extensionData)
        else { return "flags and content disagree" }
        guard data.extensions == nil else { return nil }
        let attested = data.attestedCredentialData.map {
            AuthenticatorDataTemplate.attested(
                aaguid: $0.aaguid, credentialId: $0.credentialId, publicKey: $0.credentialPublicKey)
        }
        let template = AuthenticatorDataTemplate(
            rpIdHash: data.rpIdHash, flags: data.flags, signCount: data.signCount,
            attestedCredentialData: attested ?? [])
        return template.encoded() == bytes ? nil : "what was read is not what was there"
    }

    private static func clientDataJSON(_ bytes: [UInt8]) -> String? {
        guard let data = try? CollectedClientData(parsing: bytes.span) else { return nil }
        var template = ClientDataTemplate(
            type: data.type, challenge: [], origin: data.origin, crossOrigin: data.crossOrigin)
        template.challenge = data.challenge
        template.topOrigin = data.topOrigin
        let again = template.encoded()
        return (try? CollectedClientData(parsing: again.span)) == data ? nil : "what was read cannot be written"
    }

    private static func attestationObject(_ bytes: [UInt8]) -> String? {
        guard let object = try? AttestationObject(parsing: bytes.span),
            let format = AttestationStatementFormat(rawValue: object.fmt),
            let publicKey = object.authenticatorData.attestedCredentialData?.credentialPublicKey,
            let key = try? CredentialPublicKey(decoding: publicKey.span, policy: .extended)
        else { return nil }
        let statement = AttestationStatement(
            format: format, attStmt: object.attStmt, authData: object.authData,
            authenticatorData: object.authenticatorData, clientDataHash: FuzzScene.registrationClientDataHash)
        guard let type = try? statement.verify(key: key) else { return nil }
        // Only `none` takes whatever it is given; everything else has looked at the hash of the seeds' client data.
        return (type == .none) == (format == .none) ? nil : "a statement of one format verified as another"
    }

    private static func assertion(_ bytes: [UInt8]) -> String? {
        guard let response = try? AuthenticationCeremony.response(parsing: bytes.span),
            (try? FuzzScene.authentication.verify(response, credential: FuzzScene.record)) != nil
        else { return nil }
        // ECDSA signatures can be altered and stay valid; what they sign cannot.
        return FuzzScene.isGenuine(response) ? nil : "a forged assertion verified"
    }

    private static func registration(_ bytes: [UInt8]) -> String? {
        guard let response = try? RegistrationCeremony.response(parsing: bytes.span) else { return nil }
        return attestationObject(response.attestationObject) ?? clientDataJSON(response.clientDataJSON)
    }
}
