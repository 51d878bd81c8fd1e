/// One authentication ceremony: the options that were issued, and the verification of what came back (WebAuthn L3
/// §7.2).
///
/// ```swift
/// let response = try AuthenticationCeremony.response(parsing: body.span)
/// let stored = try await store.credential(response.id)
/// let ceremony = AuthenticationCeremony(relyingParty: relyingParty, challenge: challenge)
/// let verified = try ceremony.verify(response, credential: stored ?? .decoy(for: response))
/// ```
public struct AuthenticationCeremony: Sendable {
    /// RP ID and origins.
    public var relyingParty: RelyingParty
    /// The challenge issued, at least 16 random bytes.
    public var challenge: [UInt8]
    /// Whether UV must be set.
    public var userVerification: RelyingParty.UserVerificationRequirement
    /// The credential IDs listed in the options; empty when any credential of the RP ID will do.
    public var allowCredentials: [[UInt8]]
    /// What a user handle must be.
    public var userHandle: UserHandleRequirement
    /// What happens when the counter does not move forward.
    public var signCountPolicy: SignCountPolicy
    /// What happens to extension outputs.
    public var extensions: ExtensionPolicy
    /// The key algorithms accepted in stored credentials.
    public var algorithms: COSEAlgorithmPolicy

    /// Step 6: whether the user was known before the ceremony.
    public enum UserHandleRequirement: Sendable {
        /// The user was not known: `userHandle` must be present and own the credential.
        case required
        /// The user was known: `userHandle` may be absent, and owns the credential if present.
        case optional
    }

    /// Step 22: what a counter that does not move forward means.
    public enum SignCountPolicy: Sendable {
        /// The ceremony fails.
        case refuse
        /// The ceremony succeeds and says so; the stored counter stays.
        case report
    }

    /// A ceremony with the strictest settings unless told otherwise.
    public init(
        relyingParty: RelyingParty, challenge: [UInt8],
        userVerification: RelyingParty.UserVerificationRequirement = .required,
        allowCredentials: [[UInt8]] = [], userHandle: UserHandleRequirement = .required,
        signCountPolicy: SignCountPolicy = .refuse, extensions: ExtensionPolicy = .tolerated,
        algorithms: COSEAlgorithmPolicy = .standard
    ) {
        self.relyingParty = relyingParty
        self.challenge = challenge
        self.userVerification = userVerification
        self.allowCredentials = allowCredentials
        self.userHandle = userHandle
        self.signCountPolicy = signCountPolicy
        self.extensions = extensions
        self.algorithms = algorithms
    }
}

/// What a verified assertion says, and what the credential record becomes (WebAuthn L3 §7.2 steps 23 to 25).
public struct VerifiedAuthentication: Sendable, Equatable {
    /// The credential ID.
    public var credentialId: [UInt8]
    /// The user handle, if sent.
    public var userHandle: [UInt8]?
    /// The flags as signed.
    public var flags: AuthenticatorData.Flags
    /// The counter to store: never lower than the stored one.
    public var signCount: UInt32
    /// The counter as signed, whether it moved forward or not.
    public var presentedSignCount: UInt32
    /// True when the counter did not move forward and ``AuthenticationCeremony/SignCountPolicy/report`` let it pass.
    public var signCountRegressed: Bool
    /// BS to store.
    public var backupState: Bool
    /// The origin, one of those expected.
    public var origin: String
    /// Authenticator extension outputs.
    public var extensions: CBORMap?

    /// UV: with it the credential counts as two factors.
    public var userVerified: Bool { flags.contains(.userVerified) }
}
