import Crypto
import FoundationEssentials
import SwiftASN1
@_spi(FixedExpiryValidationTime) import X509

/// Path validation of an attestation certificate (RFC 5280 §6, WebAuthn L3 §7.1 step 24).
enum TrustEvaluation {
    /// True if `trustPath` leads to one of `anchors` with every certificate on the way valid at `instant`.
    ///
    /// Revocation is not checked: it needs the network, and authenticator vendors revoke through the FIDO metadata
    /// service.
    static func leads(_ trustPath: [[UInt8]], to anchors: [[UInt8]], at instant: Date) async -> Bool {
        guard let leaf = trustPath.first, !anchors.isEmpty else { return false }
        guard let leafCertificate = try? Certificate(derEncoded: leaf) else { return false }
        // Metadata may pin the attestation certificate itself.
        if anchors.contains(leaf) {
            return leafCertificate.notValidBefore <= instant && instant <= leafCertificate.notValidAfter
        }
        let roots = anchors.compactMap { try? TrustAnchor.certificate($0) }
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

/// A trust anchor as path validation wants it.
private enum TrustAnchor {
    /// The anchor itself, or where its basicConstraints cannot be read, a certificate that says the same: RFC 5280
    /// §6.1.1 (d) takes only name and key from an anchor, and being configured as one is what makes it a CA. Some
    /// vendors' roots carry a BOOLEAN that is not DER.
    static func certificate(_ der: [UInt8]) throws -> Certificate {
        let anchor = try Certificate(derEncoded: der)
        do {
            _ = try anchor.extensions.basicConstraints
            return anchor
        } catch {
            // No signature of an anchor is ever checked, so any key can make this one.
            return try Certificate(
                version: .v3, serialNumber: anchor.serialNumber, publicKey: anchor.publicKey,
                notValidBefore: anchor.notValidBefore, notValidAfter: anchor.notValidAfter,
                issuer: anchor.issuer, subject: anchor.subject,
                extensions: Certificate.Extensions {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                },
                issuerPrivateKey: Certificate.PrivateKey(P256.Signing.PrivateKey()))
        }
    }
}

/// Critical extensions that RFC 5280 processing does not cover: the subject alternative name and extended key usage of
/// a TPM's attestation key, which the format checks, and certificate policies, which do not restrict a verifier that
/// requires no policy (§6.1.1 (c)).
private struct CheckedByFormat: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [
        .X509ExtensionID.subjectAlternativeName, .X509ExtensionID.extendedKeyUsage, .certificatePolicies,
    ]

    mutating func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        .meetsPolicy
    }
}
