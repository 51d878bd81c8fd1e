import Crypto
import CryptoExtras
import SwiftASN1
import X509

/// An attestation certificate and the questions the formats ask of it.
struct AttestationCertificate {
    let der: [UInt8]
    let certificate: Certificate

    /// Parses one DER certificate (RFC 5280 §4.1).
    init(_ der: [UInt8]) throws(AttestationError) {
        do {
            certificate = try Certificate(derEncoded: der)
        } catch {
            throw .malformedCertificate
        }
        self.der = der
    }

    /// The certified key for verifying with `alg`; nil when key and algorithm do not belong together.
    func key(for alg: COSEAlgorithmIdentifier) -> CredentialPublicKey? {
        let material: KeyMaterial?
        switch alg {
        case .es256, .esp256: material = P256.Signing.PublicKey(certificate.publicKey).map { .p256($0) }
        case .es384, .esp384: material = P384.Signing.PublicKey(certificate.publicKey).map { .p384($0) }
        case .es512, .esp512: material = P521.Signing.PublicKey(certificate.publicKey).map { .p521($0) }
        case .edDSA, .ed25519: material = Curve25519.Signing.PublicKey(certificate.publicKey).map { .ed25519($0) }
        default:
            guard let scheme = KeyMaterial.RSAScheme(alg), let key = _RSA.Signing.PublicKey(certificate.publicKey),
                RSAParameters.modulusBits.contains(key.keySizeInBits)
            else { return nil }
            material = .rsa(key, scheme)
        }
        return material.map { CredentialPublicKey(algorithm: alg, material: $0) }
    }

    /// True if the certificate certifies exactly `key`.
    func certifies(_ key: CredentialPublicKey) -> Bool {
        switch key.material {
        case .p256(let key): P256.Signing.PublicKey(certificate.publicKey)?.x963Representation == key.x963Representation
        case .p384(let key): P384.Signing.PublicKey(certificate.publicKey)?.x963Representation == key.x963Representation
        case .p521(let key): P521.Signing.PublicKey(certificate.publicKey)?.x963Representation == key.x963Representation
        case .ed25519(let key):
            Curve25519.Signing.PublicKey(certificate.publicKey)?.rawRepresentation == key.rawRepresentation
        case .rsa(let key, _):
            _RSA.Signing.PublicKey(certificate.publicKey)?.pkcs1DERRepresentation == key.pkcs1DERRepresentation
        case .ed448, .secp256k1, .mlDSA65, .mlDSA87: false
        }
    }

    /// The content of an extension, if there.
    func extensionValue(_ oid: ASN1ObjectIdentifier) -> ArraySlice<UInt8>? {
        certificate.extensions[oid: oid]?.value
    }

    /// §8.2.1, §8.3.1: version 3 and not a CA. An absent basicConstraints means "not a CA" (RFC 5280 §4.2.1.9).
    func isVersion3EndEntity() -> Bool {
        guard certificate.version == .v3, let constraints = try? certificate.extensions.basicConstraints else {
            return certificate.version == .v3 && certificate.extensions[oid: .X509ExtensionID.basicConstraints] == nil
        }
        return constraints == .notCertificateAuthority
    }

    /// `id-fido-gen-ce-aaguid` (§8.2.1): if present not critical, and an OCTET STRING of the AAGUID.
    func aaguidAgrees(with aaguid: [UInt8]) throws(AttestationError) {
        guard let found = certificate.extensions[oid: .fidoAAGUID] else { return }
        guard !found.critical else { throw .certificateRequirements }
        guard let value = try? ASN1OctetString(derEncoded: found.value) else { throw .malformedCertificate }
        guard Array(value.bytes) == aaguid else { throw .aaguidMismatch }
    }

    /// The values of one attribute of the subject, in order.
    func subject(_ attribute: ASN1ObjectIdentifier) -> [String] {
        certificate.subject.flatMap { Array($0) }.filter { $0.type == attribute }.compactMap { String($0.value) }
    }
}

extension ASN1ObjectIdentifier {
    /// id-fido-gen-ce-aaguid.
    static let fidoAAGUID: Self = [1, 3, 6, 1, 4, 1, 45724, 1, 1, 4]
    /// The nonce extension of Apple anonymous attestation.
    static let appleNonce: Self = [1, 2, 840, 113635, 100, 8, 2]
    /// The Android key description.
    static let androidKeyDescription: Self = [1, 3, 6, 1, 4, 1, 11129, 2, 1, 17]
    /// tcg-kp-AIKCertificate.
    static let tcgAIKCertificate: Self = [2, 23, 133, 8, 3]
    /// tcg-at-tpmManufacturer.
    static let tcgTPMManufacturer: Self = [2, 23, 133, 2, 1]
    /// tcg-at-tpmModel.
    static let tcgTPMModel: Self = [2, 23, 133, 2, 2]
    /// tcg-at-tpmVersion.
    static let tcgTPMVersion: Self = [2, 23, 133, 2, 3]
}
