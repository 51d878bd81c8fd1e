import Crypto

/// An attestation statement with everything its verification procedure takes (WebAuthn L3 §6.5.4, §8).
public struct AttestationStatement: Sendable {
    /// The format.
    public var format: AttestationStatementFormat
    /// The statement.
    public var attStmt: CBORMap
    /// `authenticatorData` as received.
    public var authData: [UInt8]
    /// `authenticatorData`, read.
    public var authenticatorData: AuthenticatorData
    /// SHA-256 of `clientDataJSON` as received.
    public var clientDataHash: [UInt8]

    /// A statement from its parts.
    public init(
        format: AttestationStatementFormat, attStmt: CBORMap, authData: [UInt8], authenticatorData: AuthenticatorData,
        clientDataHash: [UInt8]
    ) {
        self.format = format
        self.attStmt = attStmt
        self.authData = authData
        self.authenticatorData = authenticatorData
        self.clientDataHash = clientDataHash
    }

    /// Runs the format's verification procedure: syntax, signature and the format's own requirements, not trust.
    ///
    /// - Parameters:
    ///   - key: the decoded credential public key.
    ///   - policy: read for ``AttestationPolicy/acceptsSHA1`` only.
    public func verify(
        key: CredentialPublicKey, policy: AttestationPolicy = AttestationPolicy()
    ) throws(AttestationError) -> AttestationType {
        guard let attested = authenticatorData.attestedCredentialData else { throw .noAttestedCredentialData }
        switch format {
        case .none: return try verifyNone()
        case .packed: return try verifyPacked(attested, key)
        case .tpm: return try verifyTPM(attested, key, acceptsSHA1: policy.acceptsSHA1)
        case .androidKey: return try verifyAndroidKey(key)
        case .androidSafetyNet: return try verifyAndroidSafetyNet()
        case .fidoU2F: return try verifyFIDOU2F(attested, key)
        case .apple: return try verifyApple(key)
        }
    }

    /// `authenticatorData` ‖ `clientDataHash`, what most formats sign.
    var signedData: [UInt8] { authData + clientDataHash }

    /// `x5c` as certificates, leaf first; at least one, at most eight.
    func certificates() throws(AttestationError) -> [AttestationCertificate] {
        guard let items = attStmt["x5c"]?.elements, (1...8).contains(items.count) else { throw .malformedStatement }
        var certificates: [AttestationCertificate] = []
        for item in items {
            guard let der = item.byteString else { throw .malformedStatement }
            certificates.append(try AttestationCertificate(der))
        }
        return certificates
    }

    /// `sig`, which must not be empty.
    func signature() throws(AttestationError) -> [UInt8] {
        guard let signature = attStmt["sig"]?.byteString, !signature.isEmpty else { throw .malformedStatement }
        return signature
    }

    /// `alg`.
    func algorithm() throws(AttestationError) -> COSEAlgorithmIdentifier {
        guard let number = attStmt["alg"]?.integer else { throw .malformedStatement }
        return COSEAlgorithmIdentifier(rawValue: number)
    }

    /// §8.7: an empty map, and nothing is attested.
    private func verifyNone() throws(AttestationError) -> AttestationType {
        guard attStmt.entries.isEmpty else { throw .malformedStatement }
        return .none
    }

    func trustPath(_ certificates: [AttestationCertificate]) -> AttestationType {
        .certified(trustPath: certificates.map(\.der))
    }
}
