/// Why an attestation object or its statement is not correct (WebAuthn L3 §6.5.4, §8). Names the rule, holds no input.
public enum AttestationError: Error, Equatable, Sendable {
    /// The attestation object is not a map of `fmt`, `attStmt` and `authData` with values of the right types.
    case malformedObject
    /// AT is not set, so there is no credential to register.
    case noAttestedCredentialData
    /// `id` of the response is not the credential ID in the attested credential data.
    case credentialIdMismatch
    /// A format this library does not know; names are case-sensitive.
    case unknownFormat
    /// A known format that the policy does not accept.
    case formatNotAccepted
    /// A member of the statement is missing, surplus or of the wrong type.
    case malformedStatement
    /// `alg` of the statement is not usable, or not the one the key demands.
    case algorithmMismatch
    /// The signature of the statement does not verify.
    case invalidSignature
    /// A certificate is not DER, or not of the shape the format demands.
    case malformedCertificate
    /// The attestation certificate does not meet the format's requirements (§8.2.1, §8.3.1, …).
    case certificateRequirements
    /// The AAGUID in the certificate is not the one in the authenticator data.
    case aaguidMismatch
    /// The key in the certificate, or in a TPM structure, is not the credential's.
    case publicKeyMismatch
    /// A hash or challenge inside the statement is not the expected one.
    case nonceMismatch
    /// A TPM structure is malformed or of the wrong kind.
    case malformedTPMStructure
    /// An Android key description is malformed or does not say what §8.4 demands.
    case keyDescription
    /// No chain to a trust anchor, where the policy demands one.
    case untrusted
}
