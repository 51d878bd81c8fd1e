import FoundationEssentials
import SwiftASN1
@_spi(FixedExpiryValidationTime) import X509

/// Path validation of an attestation certificate (RFC 5280 §6, WebAuthn L3 §7.1 step 24).
enum TrustEvaluation {
    /// True if `trustPath` leads to one of `anchors` with every certificate on the way valid at `instant`.
    ///
    /// Revocation is not checked: it needs the network, and authenticator vendors revoke through the FIDO metadata service.
    static func leads(_ trustPath: [[UInt8]], to anchors: [[UInt8]], at instant: Date) async -> Bool {
        guard let leaf = trustPath.first, !anchors.isEmpty else { return false }
        guard let leafCertificate = try? Certificate(derEncoded: leaf) else { return false }
        // Metadata may pin the attestation certificate itself.
        if anchors.contains(leaf) {
            return leafCertificate.notValidBefore <= instant && instant <= leafCertificate.notValidAfter
        }
        let roots = anchors.compactMap { try? Certificate(derEncoded: $0) }
        let intermediates = trustPath.dropFirst().compactMap { try? Certificate(derEncoded: $0) }
        var verifier = Verifier(rootCertificates: CertificateStore(roots)) {
            RFC5280Policy(fixedExpiryValidationTime: instant)
            CheckedByFormat()
        }
        switch await verifier.validate(leaf: leafCertificate, intermediates: CertificateStore(intermediates)) {
        case .validCertificate: return true
        case .couldNotValidate: return false
        }
    }
}

/// Critical extensions that RFC 5280 processing does not cover and the attestation formats do: the subject alternative name
/// and the extended key usage of a TPM's attestation key.
private struct CheckedByFormat: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.subjectAlternativeName, .X509ExtensionID.extendedKeyUsage,
    ]

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        .meetsPolicy
    }
}
