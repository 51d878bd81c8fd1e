/// One registration ceremony: the options that were issued, and the verification of what came back (WebAuthn L3 §7.1).
///
/// ```swift
/// let response = try RegistrationCeremony.response(parsing: body.span)
/// let ceremony = RegistrationCeremony(relyingParty: relyingParty, challenge: challenge)
/// let verified = try await ceremony.verify(response, at: now)
/// try await store.insert(verified.credential)  // unique by credential ID
/// ```
public struct RegistrationCeremony: Sendable {
    /// RP ID and origins.
    public var relyingParty: RelyingParty
    /// The challenge issued, at least 16 random bytes.
    public var challenge: [UInt8]
    /// The algorithms offered in `pubKeyCredParams`.
    public var pubKeyCredParams: Set<COSEAlgorithmIdentifier>
    /// Whether UV must be set.
    public var userVerification: RelyingParty.UserVerificationRequirement
    /// Whether UP must be set; false only if the options were issued for conditional mediation.
    public var requiresUserPresence: Bool
    /// What backup eligibility and state are accepted.
    public var backup: BackupPolicy
    /// Credential IDs known to be registered; the store's unique index has the last word (§7.1 step 26).
    public var registeredCredentialIds: [[UInt8]]
    /// Formats and trust.
    public var attestation: AttestationPolicy
    /// What happens to extension outputs.
    public var extensions: ExtensionPolicy

    /// Steps 18 and 19: a relying party's wishes about credentials that leave the device.
    public enum BackupPolicy: Sendable {
        /// Any credential.
        case any
        /// Only credentials that may be backed up (BE).
        case eligible
        /// Only credentials that are backed up already (BS).
        case backedUp
        /// Only credentials bound to one device.
        case deviceBound

        func accepts(eligible: Bool) -> Bool {
            switch self {
            case .any: true
            case .eligible, .backedUp: eligible
            case .deviceBound: !eligible
            }
        }

        func accepts(backedUp: Bool) -> Bool {
            self != .backedUp || backedUp
        }
    }

    /// A ceremony with the strictest settings unless told otherwise.
    public init(
        relyingParty: RelyingParty, challenge: [UInt8],
        pubKeyCredParams: Set<COSEAlgorithmIdentifier> = COSEAlgorithmPolicy.standard.accepted,
        userVerification: RelyingParty.UserVerificationRequirement = .required, requiresUserPresence: Bool = true,
        backup: BackupPolicy = .any, registeredCredentialIds: [[UInt8]] = [],
        attestation: AttestationPolicy = AttestationPolicy(), extensions: ExtensionPolicy = .tolerated
    ) {
        self.relyingParty = relyingParty
        self.challenge = challenge
        self.pubKeyCredParams = pubKeyCredParams
        self.userVerification = userVerification
        self.requiresUserPresence = requiresUserPresence
        self.backup = backup
        self.registeredCredentialIds = registeredCredentialIds
        self.attestation = attestation
        self.extensions = extensions
    }
}

/// What a verified registration yields: the record to store, and what is known of the authenticator.
public struct VerifiedRegistration: Sendable, Equatable {
    /// The record to store (§7.1 step 27), without a user handle: the caller knows whose ceremony it was.
    public var credential: CredentialRecord
    /// The algorithm of the credential's key.
    public var algorithm: COSEAlgorithmIdentifier
    /// The attestation statement format.
    public var format: AttestationStatementFormat
    /// How the attestation was made.
    public var attestationType: AttestationType
    /// What it is worth.
    public var trust: AttestationTrust
    /// The flags as attested.
    public var flags: AuthenticatorData.Flags
    /// The origin, one of those expected.
    public var origin: String
    /// Authenticator extension outputs.
    public var extensions: CBORMap?
}
