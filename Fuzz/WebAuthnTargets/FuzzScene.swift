import Crypto
public import SoftwareAuthenticator
public import WebAuthnVerify

/// One relying party, one credential and one challenge, the same in every process, so that corpora stay meaningful.
public enum FuzzScene {
    static let rpId = "fuzz.example"
    static let origin = "https://fuzz.example"
    /// The challenge of both ceremonies.
    public static let challenge = [UInt8](repeating: 0x5a, count: 32)
    static let flags: AuthenticatorData.Flags = [.userPresent, .userVerified, .backupEligible, .backupState]
    /// Any number below the order of P-256 is a private key; this one protects nothing.
    static let privateKey = try? P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 0x11, count: 32))

    /// The credential, if the library can make its key, which it can.
    public static let credential: SoftwareCredential? = privateKey.map {
        SoftwareCredential(
            id: Array("fuzz-credential-".utf8), rpId: rpId, userHandle: [1, 2, 3, 4], algorithm: .es256, key: .p256($0),
            signCount: 0)
    }

    static let record: CredentialRecord =
        (try? credential?.record(flags: flags))
        ?? CredentialRecord(id: [], publicKey: [], signCount: 0, backupEligible: true)

    static let authentication = AuthenticationCeremony(
        relyingParty: RelyingParty(rpId: rpId, origins: [origin]), challenge: challenge)

    /// Client data of the seeds' registrations, and its hash.
    static let registrationClientData = ClientDataTemplate(
        type: "webauthn.create", challenge: challenge, origin: origin)
    static let registrationClientDataHash = Array(SHA256.hash(data: registrationClientData.encoded()))

    /// Whether the assertion says what the seed said. Every seed has one authenticator data and one client data.
    static func isGenuine(_ response: AuthenticationResponseJSON) -> Bool {
        guard let genuine = try? assertion()?.response() else { return false }
        return response.authenticatorData == genuine.authenticatorData
            && response.clientDataJSON == genuine.clientDataJSON
    }

    /// The genuine assertion.
    public static func assertion() throws -> AssertionTemplate? {
        guard let credential else { return nil }
        return try SoftwareAuthenticator(flags: flags).assertion(by: credential, challenge: challenge, origin: origin)
    }

    /// A genuine registration of any credential key.
    public static func registration(
        _ format: AttestationStatementFormat, _ algorithm: COSEAlgorithmIdentifier, selfAttested: Bool = false,
        key: SoftwareKey? = nil
    ) throws -> RegistrationTemplate {
        let authenticator = try SoftwareAuthenticator(flags: flags)
        let credential = try authenticator.makeCredential(
            rpId: rpId, userHandle: [1, 2, 3, 4], algorithm: algorithm, key: key)
        var template = try authenticator.registration(
            of: credential, challenge: challenge, origin: origin, format: format, selfAttested: selfAttested)
        template.clientData = registrationClientData
        return template
    }
}
