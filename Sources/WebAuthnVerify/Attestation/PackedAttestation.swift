import SwiftASN1
import X509

extension AttestationStatement {
    /// Packed attestation (WebAuthn L3 §8.2): with `x5c` a certified key signed, without it the credential key itself.
    func verifyPacked(
        _ attested: AttestedCredentialData, _ key: CredentialPublicKey
    ) throws(AttestationError) -> AttestationType {
        let alg = try algorithm(), signature = try signature()
        guard attStmt["x5c"] != nil else {
            guard attStmt.hasOnly("alg", "sig") else { throw .malformedStatement }
            guard alg == key.algorithm else { throw .algorithmMismatch }
            guard key.isValidSignature(signature, for: signedData) else { throw .invalidSignature }
            return .selfAttestation
        }
        guard attStmt.hasOnly("alg", "sig", "x5c") else { throw .malformedStatement }
        let certificates = try certificates()
        guard let leaf = certificates.first else { throw .malformedStatement }
        guard let leafKey = leaf.key(for: alg) else { throw .algorithmMismatch }
        guard leafKey.isValidSignature(signature, for: signedData) else { throw .invalidSignature }
        try leaf.meetsPackedRequirements()
        try leaf.aaguidAgrees(with: attested.aaguid)
        return trustPath(certificates)
    }
}

extension AttestationCertificate {
    /// §8.2.1 "Certificate Requirements for Packed Attestation Statements".
    fileprivate func meetsPackedRequirements() throws(AttestationError) {
        guard isVersion3EndEntity(),
            subject(.RDNAttributeType.countryName).contains(where: { $0.utf8.count == 2 }),
            subject(.RDNAttributeType.organizationName).contains(where: { !$0.isEmpty }),
            subject(.RDNAttributeType.organizationalUnitName).contains("Authenticator Attestation"),
            subject(.RDNAttributeType.commonName).contains(where: { !$0.isEmpty })
        else { throw .certificateRequirements }
    }
}
