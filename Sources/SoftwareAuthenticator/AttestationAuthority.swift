public import Crypto
internal import FoundationEssentials
internal import SwiftASN1
internal import X509

/// A certification authority for attestation certificates, with a root of its own.
public struct AttestationAuthority: Sendable {
    /// The root's private key.
    let key: P256.Signing.PrivateKey
    /// The key attestation certificates certify, where they do not certify the credential.
    public let attestationKey: P256.Signing.PrivateKey
    /// The root certificate, DER.
    public let root: [UInt8]
    let subject: DistinguishedName

    /// From 2024 to 2054; ceremonies choose an instant inside.
    static let validFrom = Date(timeIntervalSince1970: 1_704_067_200)
    static let validTo = Date(timeIntervalSince1970: 2_650_838_400)

    /// A new authority.
    public init() throws {
        key = P256.Signing.PrivateKey()
        attestationKey = P256.Signing.PrivateKey()
        subject = try DistinguishedName {
            CountryName("XX")
            OrganizationName("Software Authenticator")
            CommonName("Software Attestation Root")
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: Self.validFrom, notValidAfter: Self.validTo, issuer: subject, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                Critical(KeyUsage(keyCertSign: true))
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        root = try Self.der(certificate)
    }

    /// A leaf for `publicKey`.
    func leaf(
        _ publicKey: Certificate.PublicKey, subject leafSubject: DistinguishedName, extensions: [Certificate.Extension]
    ) throws -> [UInt8] {
        try Self.der(
            Certificate(
                version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: publicKey,
                notValidBefore: Self.validFrom, notValidAfter: Self.validTo, issuer: subject, subject: leafSubject,
                signatureAlgorithm: .ecdsaWithSHA256, extensions: try Certificate.Extensions(extensions),
                issuerPrivateKey: Certificate.PrivateKey(key)))
    }

    /// The subject §8.2.1 asks for.
    static func packedSubject() throws -> DistinguishedName {
        try DistinguishedName {
            CountryName("XX")
            OrganizationName("Software Authenticator")
            OrganizationalUnitName("Authenticator Attestation")
            CommonName("Software Authenticator Batch")
        }
    }

    private static func der(_ certificate: Certificate) throws -> [UInt8] {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }
}
