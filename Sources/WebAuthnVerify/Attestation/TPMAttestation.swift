import Crypto
import CryptoExtras
import SwiftASN1
import X509

extension AttestationStatement {
    /// TPM attestation (WebAuthn L3 §8.3): an attestation key certified the credential key inside a TPM 2.0.
    func verifyTPM(
        _ attested: AttestedCredentialData, _ key: CredentialPublicKey, acceptsSHA1: Bool
    ) throws(AttestationError) -> AttestationType {
        guard attStmt.hasOnly("ver", "alg", "x5c", "sig", "certInfo", "pubArea"),
            attStmt["ver"]?.textString == "2.0",
            let certInfo = attStmt["certInfo"]?.byteString, let pubArea = attStmt["pubArea"]?.byteString
        else { throw .malformedStatement }
        let alg = try algorithm(), signature = try signature(), certificates = try certificates()
        guard let leaf = certificates.first else { throw .malformedStatement }

        guard let publicArea = TPMPublicArea(parsing: pubArea.span) else { throw .malformedTPMStructure }
        guard publicArea.describes(key) else { throw .publicKeyMismatch }
        guard let attest = TPMAttest(parsing: certInfo.span) else { throw .malformedTPMStructure }
        guard let digest = Self.digest(signedData, for: alg, acceptsSHA1: acceptsSHA1) else { throw .algorithmMismatch }
        guard attest.extraData == digest else { throw .nonceMismatch }
        guard let name = publicArea.name(of: pubArea), attest.attestedName == name else { throw .publicKeyMismatch }

        guard let leafKey = leaf.key(for: alg) else { throw .algorithmMismatch }
        guard leafKey.isValidSignature(signature, for: certInfo) else { throw .invalidSignature }
        try leaf.meetsTPMRequirements()
        try leaf.aaguidAgrees(with: attested.aaguid)
        return trustPath(certificates)
    }

    /// The hash that `alg` employs, over `data`.
    private static func digest(_ data: [UInt8], for alg: COSEAlgorithmIdentifier, acceptsSHA1: Bool) -> [UInt8]? {
        switch alg {
        case .rs1: acceptsSHA1 ? Array(Insecure.SHA1.hash(data: data)) : nil
        case .es256, .esp256, .rs256, .ps256: Array(SHA256.hash(data: data))
        case .es384, .esp384, .rs384, .ps384: Array(SHA384.hash(data: data))
        case .es512, .esp512, .rs512, .ps512: Array(SHA512.hash(data: data))
        default: nil
        }
    }
}

extension TPMPublicArea {
    /// True if the public area is that of `key`.
    fileprivate func describes(_ key: CredentialPublicKey) -> Bool {
        switch (key.material, unique) {
        case (.rsa(let key, _), .rsa(let modulus, let exponent)):
            guard let primitives = try? key.getKeyPrimitives() else { return false }
            var value: UInt64 = 0
            for byte in primitives.publicExponent.suffix(8) { value = value << 8 | UInt64(byte) }
            return Array(primitives.modulus) == modulus && value == exponent
        case (.p256(let key), .ecc(0x0003, let x, let y)): return Array(key.rawRepresentation) == padded(x, y, to: 32)
        case (.p384(let key), .ecc(0x0004, let x, let y)): return Array(key.rawRepresentation) == padded(x, y, to: 48)
        case (.p521(let key), .ecc(0x0005, let x, let y)): return Array(key.rawRepresentation) == padded(x, y, to: 66)
        default: return false
        }
    }

    /// x ‖ y at full width: a TPM may leave out leading zeros.
    private func padded(_ x: [UInt8], _ y: [UInt8], to width: Int) -> [UInt8]? {
        guard x.count <= width, y.count <= width else { return nil }
        return [UInt8](repeating: 0, count: width - x.count) + x + [UInt8](repeating: 0, count: width - y.count) + y
    }

    /// The TPM name: `nameAlg` ‖ hash of the public area (TPM 2.0 Library, Part 1 §16).
    fileprivate func name(of pubArea: [UInt8]) -> [UInt8]? {
        let prefix = [UInt8(truncatingIfNeeded: nameAlg >> 8), UInt8(truncatingIfNeeded: nameAlg)]
        return switch nameAlg {
        case Algorithm.sha1: prefix + Array(Insecure.SHA1.hash(data: pubArea))
        case Algorithm.sha256: prefix + Array(SHA256.hash(data: pubArea))
        case Algorithm.sha384: prefix + Array(SHA384.hash(data: pubArea))
        case Algorithm.sha512: prefix + Array(SHA512.hash(data: pubArea))
        default: nil
        }
    }
}

extension AttestationCertificate {
    /// §8.3.1 "TPM Attestation Statement Certificate Requirements".
    ///
    /// The manufacturer must be named in TCG's form; trust anchors decide which manufacturers exist.
    fileprivate func meetsTPMRequirements() throws(AttestationError) {
        guard isVersion3EndEntity(), subject.isEmpty else { throw .certificateRequirements }
        guard let found = `extension`(.X509ExtensionID.extendedKeyUsage), let usage = try? ExtendedKeyUsage(found),
            usage.contains(ExtendedKeyUsage.Usage(oid: .tcgAIKCertificate))
        else { throw .certificateRequirements }
        guard let found = `extension`(.X509ExtensionID.subjectAlternativeName),
            let names = try? SubjectAlternativeNames(found)
        else { throw .certificateRequirements }
        // Vendors put the three attributes in one RDN or in three; both are read.
        let attributes = names.flatMap { (name) -> [RelativeDistinguishedName.Attribute] in
            guard case .directoryName(let directory) = name else { return [] }
            return directory.flatMap { Array($0) }
        }
        func value(_ type: ASN1ObjectIdentifier) -> String? {
            attributes.first { $0.type == type }.flatMap { String($0.value) }
        }
        guard let manufacturer = value(.tcgTPMManufacturer), value(.tcgTPMModel) != nil, value(.tcgTPMVersion) != nil,
            manufacturer.hasPrefix("id:"), manufacturer.utf8.count == 11,
            manufacturer.dropFirst(3).allSatisfy(\.isHexDigit)
        else { throw .certificateRequirements }
    }
}
