extension AttestationStatement {
    /// Android SafetyNet attestation (WebAuthn L3 §8.5).
    func verifyAndroidSafetyNet() throws(AttestationError) -> AttestationType {
        throw .formatNotAccepted
    }
}
