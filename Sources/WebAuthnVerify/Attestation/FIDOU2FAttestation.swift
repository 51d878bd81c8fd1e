import Crypto

extension AttestationStatement {
    /// FIDO U2F attestation (WebAuthn L3 §8.6): ES256 over the U2F registration message, one P-256 certificate.
    ///
    /// The message does not cover the AAGUID, so one that is not zero would be an unsigned claim and is refused.
    func verifyFIDOU2F(
        _ attested: AttestedCredentialData, _ key: CredentialPublicKey
    ) throws(AttestationError) -> AttestationType {
        guard attStmt.hasOnly("sig", "x5c") else { throw .malformedStatement }
        let certificates = try certificates(), signature = try signature()
        guard certificates.count == 1, let leaf = certificates.first else { throw .malformedStatement }
        guard let leafKey = leaf.key(for: .es256) else { throw .certificateRequirements }
        guard case .p256(let credential) = key.material else { throw .algorithmMismatch }
        guard attested.aaguid.allSatisfy({ $0 == 0 }) else { throw .aaguidMismatch }
        let verificationData =
            [0x00] + authenticatorData.rpIdHash + clientDataHash + attested.credentialId
            + Array(credential.x963Representation)
        guard leafKey.isValidSignature(signature, for: verificationData) else { throw .invalidSignature }
        return trustPath(certificates)
    }
}
