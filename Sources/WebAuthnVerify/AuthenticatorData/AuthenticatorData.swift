/// Authenticator data, the part of every ceremony the authenticator speaks for (WebAuthn L3 §6.1).
public struct AuthenticatorData: Sendable, Equatable {
    /// SHA-256 of the RP ID, 32 bytes.
    public var rpIdHash: [UInt8]
    /// UP, UV, BE, BS, AT and ED.
    public var flags: Flags
    /// The signature counter; zero from authenticators that have none.
    public var signCount: UInt32
    /// The new credential; present exactly when AT is set.
    public var attestedCredentialData: AttestedCredentialData?
    /// Authenticator extension outputs; present exactly when ED is set.
    public var extensions: CBORMap?

    /// The flags byte (WebAuthn L3 §6.1). Bits 1 and 5 are reserved and carry no meaning.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The byte.
        public let rawValue: UInt8

        /// Wraps a byte.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// UP, bit 0: a user was present.
        public static let userPresent = Flags(rawValue: 1 << 0)
        /// UV, bit 2: the authenticator verified the user.
        public static let userVerified = Flags(rawValue: 1 << 2)
        /// BE, bit 3: the credential may be backed up; never changes.
        public static let backupEligible = Flags(rawValue: 1 << 3)
        /// BS, bit 4: the credential is backed up now.
        public static let backupState = Flags(rawValue: 1 << 4)
        /// AT, bit 6: attested credential data follows.
        public static let attestedCredentialData = Flags(rawValue: 1 << 6)
        /// ED, bit 7: extension data follows.
        public static let extensionData = Flags(rawValue: 1 << 7)
    }
}

/// Attested credential data (WebAuthn L3 §6.5.1).
public struct AttestedCredentialData: Sendable, Equatable {
    /// The authenticator's model, 16 bytes, often all zero.
    public var aaguid: [UInt8]
    /// The credential ID.
    public var credentialId: [UInt8]
    /// The credential public key as a COSE key, exactly as received.
    public var credentialPublicKey: [UInt8]
}

/// Why bytes are not authenticator data.
public enum AuthenticatorDataError: Error, Equatable, Sendable {
    /// Fewer bytes than the flags and lengths announce.
    case truncated
    /// Bytes after everything the flags announce.
    case trailingBytes
    /// A credential ID of no bytes.
    case emptyCredentialId
    /// The credential public key or the extensions are not CBOR this library reads.
    case cbor(CBORError)
    /// Extensions that are not a map with text keys.
    case extensionsNotMap
}
