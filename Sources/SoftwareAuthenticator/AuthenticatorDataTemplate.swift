public import WebAuthnVerify

/// Authenticator data before it is written: every field can be changed, also into something no authenticator says.
public struct AuthenticatorDataTemplate: Sendable {
    /// SHA-256 of the RP ID.
    public var rpIdHash: [UInt8]
    /// The flags byte; AT and ED are not derived from what follows.
    public var flags: AuthenticatorData.Flags
    /// The signature counter.
    public var signCount: UInt32
    /// AAGUID, length, credential ID and COSE key; empty when absent.
    public var attestedCredentialData: [UInt8] = []
    /// The extension outputs as CBOR; empty when absent.
    public var extensions: [UInt8] = []
    /// Bytes after the end.
    public var trailing: [UInt8] = []

    /// Authenticator data from its parts.
    public init(
        rpIdHash: [UInt8], flags: AuthenticatorData.Flags, signCount: UInt32, attestedCredentialData: [UInt8] = []
    ) {
        self.rpIdHash = rpIdHash
        self.flags = flags
        self.signCount = signCount
        self.attestedCredentialData = attestedCredentialData
    }

    /// Attested credential data as bytes.
    public static func attested(aaguid: [UInt8], credentialId: [UInt8], publicKey: [UInt8]) -> [UInt8] {
        aaguid + [UInt8(truncatingIfNeeded: credentialId.count >> 8), UInt8(truncatingIfNeeded: credentialId.count)]
            + credentialId + publicKey
    }

    /// The bytes.
    public func encoded() -> [UInt8] {
        rpIdHash + [flags.rawValue]
            + (0..<4).reversed().map { UInt8(truncatingIfNeeded: signCount >> UInt32(8 * $0)) }
            + attestedCredentialData + extensions + trailing
    }
}
