import Crypto
public import WebAuthnVerify

/// An authenticator and its client in software: it makes registrations and assertions for every algorithm, format and
/// flag.
///
/// For `postern try passkey` and for tests. Its keys live in memory and nothing verifies its user.
public struct SoftwareAuthenticator: Sendable {
    /// The model it claims to be.
    public var aaguid: [UInt8]
    /// UP, UV, BE and BS of everything it says.
    public var flags: AuthenticatorData.Flags
    /// What its certificates are signed with.
    public var authority: AttestationAuthority

    /// An authenticator that verifies its user and syncs its passkeys.
    public init(
        aaguid: [UInt8] = Array("software-authntr".utf8),
        flags: AuthenticatorData.Flags = [.userPresent, .userVerified, .backupEligible, .backupState],
        authority: AttestationAuthority? = nil
    ) throws {
        self.aaguid = aaguid
        self.flags = flags
        self.authority = try authority ?? AttestationAuthority()
    }

    /// A new credential, not yet registered anywhere.
    public func makeCredential(
        rpId: String, userHandle: [UInt8], algorithm: COSEAlgorithmIdentifier = .es256, key: SoftwareKey? = nil
    ) throws -> SoftwareCredential {
        var generator = SystemRandomNumberGenerator()
        return SoftwareCredential(
            id: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }, rpId: rpId, userHandle: userHandle,
            algorithm: algorithm, key: try key ?? SoftwareKey(algorithm), signCount: 0)
    }

    /// A registration of `credential`, ready to be sent or to be spoiled first.
    public func registration(
        of credential: SoftwareCredential, challenge: [UInt8], origin: String,
        format: AttestationStatementFormat = .none, selfAttested: Bool = false
    ) throws -> RegistrationTemplate {
        RegistrationTemplate(
            credential: credential,
            clientData: ClientDataTemplate(type: "webauthn.create", challenge: challenge, origin: origin),
            authenticatorData: AuthenticatorDataTemplate(
                rpIdHash: credential.rpIdHash, flags: flags.union(.attestedCredentialData),
                signCount: credential.signCount,
                attestedCredentialData: AuthenticatorDataTemplate.attested(
                    aaguid: format == .fidoU2F ? [UInt8](repeating: 0, count: 16) : aaguid,
                    credentialId: credential.id, publicKey: try credential.key.coseKey(credential.algorithm))),
            format: format, selfAttested: selfAttested, aaguid: aaguid, authority: authority)
    }

    /// An assertion by `credential`, ready to be sent or to be spoiled first.
    public func assertion(
        by credential: SoftwareCredential, challenge: [UInt8], origin: String
    ) -> AssertionTemplate {
        AssertionTemplate(
            credential: credential,
            clientData: ClientDataTemplate(type: "webauthn.get", challenge: challenge, origin: origin),
            authenticatorData: AuthenticatorDataTemplate(
                rpIdHash: credential.rpIdHash, flags: flags, signCount: credential.signCount))
    }
}

/// A credential held in memory.
public struct SoftwareCredential: Sendable {
    /// The credential ID.
    public var id: [UInt8]
    /// The RP ID it is scoped to.
    public var rpId: String
    /// `user.id` of its owner.
    public var userHandle: [UInt8]
    /// The algorithm its key states.
    public var algorithm: COSEAlgorithmIdentifier
    /// The private key.
    public var key: SoftwareKey
    /// The counter in the next thing it signs; passkeys that sync leave it at zero.
    public var signCount: UInt32

    /// A credential from its parts.
    public init(
        id: [UInt8], rpId: String, userHandle: [UInt8], algorithm: COSEAlgorithmIdentifier, key: SoftwareKey,
        signCount: UInt32
    ) {
        self.id = id
        self.rpId = rpId
        self.userHandle = userHandle
        self.algorithm = algorithm
        self.key = key
        self.signCount = signCount
    }

    /// SHA-256 of the RP ID.
    public var rpIdHash: [UInt8] { Array(SHA256.hash(data: Array(rpId.utf8))) }

    /// The record a relying party keeps of it.
    public func record(flags: AuthenticatorData.Flags) throws -> CredentialRecord {
        CredentialRecord(
            id: id, publicKey: try key.coseKey(algorithm), signCount: signCount,
            backupEligible: flags.contains(.backupEligible), backupState: flags.contains(.backupState),
            userHandle: userHandle)
    }
}
