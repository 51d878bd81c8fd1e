/// An attestation statement format identifier (WebAuthn L3 §8; IANA "WebAuthn Attestation Statement Format
/// Identifiers"). Names are compared case-sensitively.
public enum AttestationStatementFormat: String, Sendable, CaseIterable, Hashable {
    /// §8.7.
    case none
    /// §8.2.
    case packed
    /// §8.3.
    case tpm
    /// §8.4.
    case androidKey = "android-key"
    /// §8.5.
    case androidSafetyNet = "android-safetynet"
    /// §8.6.
    case fidoU2F = "fido-u2f"
    /// §8.8.
    case apple
}

/// How an attestation was made (WebAuthn L3 §6.5.3), and the certificates it came with.
public enum AttestationType: Sendable, Equatable {
    /// No attestation.
    case none
    /// Signed by the credential key itself.
    case selfAttestation
    /// Signed by a certified key: Basic, AttCA or AnonCA, which a statement does not tell apart. DER, leaf first.
    case certified(trustPath: [[UInt8]])
}

/// What a relying party may believe about an authenticator's origin (WebAuthn L3 §7.1 step 24).
public enum AttestationTrust: String, Sendable {
    /// Nothing was attested.
    case none
    /// The key attests itself: integrity of the registration, no statement about the model.
    case selfAttested
    /// A certified statement whose chain ends in no configured trust anchor.
    case untrusted
    /// A chain to a trust anchor, valid at the time given.
    case trusted
}
