import Crypto
import CryptoExtras
import SwiftASN1
import X509

extension AttestationCertificate {
    /// The certified key for verifying with `alg`; nil when key and algorithm do not belong together.
    func key(for alg: COSEAlgorithmIdentifier) -> CredentialPublicKey? {
        let material: KeyMaterial?
        let publicKey = try? Certificate.PublicKey(derEncoded: Array(subjectPublicKeyInfo))
        switch alg {
        case .es256, .esp256: material = publicKey.flatMap(P256.Signing.PublicKey.init).map { .p256($0) }
        case .es384, .esp384: material = publicKey.flatMap(P384.Signing.PublicKey.init).map { .p384($0) }
        case .es512, .esp512: material = publicKey.flatMap(P521.Signing.PublicKey.init).map { .p521($0) }
        case .edDSA, .ed25519: material = publicKey.flatMap(Curve25519.Signing.PublicKey.init).map { .ed25519($0) }
        case .ed448: material = rawKey(.ed448).flatMap(OpenSSLPublicKey.init(ed448:)).map { .ed448($0) }
        case .mlDSA65:
            material = rawKey(.mlDSA65).flatMap { try? MLDSA65.PublicKey(rawRepresentation: $0) }.map { .mlDSA65($0) }
        case .mlDSA87:
            material = rawKey(.mlDSA87).flatMap { try? MLDSA87.PublicKey(rawRepresentation: $0) }.map { .mlDSA87($0) }
        default:
            guard let scheme = KeyMaterial.RSAScheme(alg), let key = publicKey.flatMap(_RSA.Signing.PublicKey.init),
                RSAParameters.modulusBits.contains(key.keySizeInBits)
            else { return nil }
            material = .rsa(key, scheme)
        }
        return material.map { CredentialPublicKey(algorithm: alg, material: $0) }
    }

    /// True if the certificate certifies exactly `key`.
    func certifies(_ key: CredentialPublicKey) -> Bool {
        switch (key.material, self.key(for: key.algorithm)?.material) {
        case (.p256(let key), .p256(let certified)): key.x963Representation == certified.x963Representation
        case (.p384(let key), .p384(let certified)): key.x963Representation == certified.x963Representation
        case (.p521(let key), .p521(let certified)): key.x963Representation == certified.x963Representation
        case (.ed25519(let key), .ed25519(let certified)): key.rawRepresentation == certified.rawRepresentation
        case (.rsa(let key, _), .rsa(let certified, _)): key.pkcs1DERRepresentation == certified.pkcs1DERRepresentation
        default: false
        }
    }

    /// The key bits of a `SubjectPublicKeyInfo` whose algorithm is `oid` without parameters (RFC 8410 §3, RFC 9881 §4).
    private func rawKey(_ oid: ASN1ObjectIdentifier) -> [UInt8]? {
        try? DER.sequence(try DER.parse(subjectPublicKeyInfo), identifier: .sequence) { (nodes) in
            guard let identifier = nodes.next() else { throw AttestationError.malformedCertificate }
            let algorithm = try DER.sequence(identifier, identifier: .sequence) { (inner) in
                try ASN1ObjectIdentifier(derEncoded: &inner)
            }
            guard algorithm == oid else { throw AttestationError.algorithmMismatch }
            return Array(try ASN1BitString(derEncoded: &nodes).bytes)
        }
    }
}
