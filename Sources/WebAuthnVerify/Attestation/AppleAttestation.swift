import Crypto
import SwiftASN1
import X509

extension AttestationStatement {
    /// Apple anonymous attestation (WebAuthn L3 §8.8): the leaf certifies the credential key and carries the nonce
    /// SHA-256(`authenticatorData` ‖ `clientDataHash`). There is no signature of its own.
    ///
    /// Early Apple platforms add `alg`; it is ignored.
    func verifyApple(_ key: CredentialPublicKey) throws(AttestationError) -> AttestationType {
        guard attStmt.hasOnly("x5c") || attStmt.hasOnly("alg", "x5c") else { throw .malformedStatement }
        let certificates = try certificates()
        guard let leaf = certificates.first else { throw .malformedStatement }
        guard let value = leaf.extension(.appleNonce)?.value, let nonce = Self.appleNonce(value) else {
            throw .certificateRequirements
        }
        guard nonce == Array(SHA256.hash(data: signedData)) else { throw .nonceMismatch }
        guard leaf.certifies(key) else { throw .publicKeyMismatch }
        return trustPath(certificates)
    }

    /// SEQUENCE { [1] EXPLICIT OCTET STRING }.
    private static func appleNonce(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        try? DER.sequence(try DER.parse(value), identifier: .sequence) { (nodes) in
            try DER.explicitlyTagged(&nodes, tagNumber: 1, tagClass: .contextSpecific) { (node) in
                Array(try ASN1OctetString(derEncoded: node).bytes)
            }
        }
    }
}
