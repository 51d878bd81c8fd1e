import Crypto
import CryptoExtras
import FoundationEssentials
import SwiftASN1
import WebAuthnVerify
import X509

extension RegistrationTemplate {
    typealias Statement = [(String, CBORValue)]

    func statement(authData: [UInt8], clientDataHash: [UInt8]) throws -> Statement {
        let signed = authData + clientDataHash
        switch format {
        case .none: return []
        case .packed where selfAttested:
            return [("alg", .integer(credential.algorithm.rawValue)), ("sig", .bytes(try credential.key.sign(signed)))]
        case .packed: return try packed(signed)
        case .fidoU2F: return try fidoU2F(clientDataHash)
        case .apple: return try apple(signed)
        case .androidKey: return try androidKey(signed, clientDataHash)
        case .tpm: return try tpm(signed)
        case .androidSafetyNet: return try androidSafetyNet(signed)
        }
    }

    /// The credential's public key in a certificate.
    func certificatePublicKey() throws -> Certificate.PublicKey {
        switch credential.key {
        case .p256(let key): Certificate.PublicKey(key.publicKey)
        case .p384(let key): Certificate.PublicKey(key.publicKey)
        case .p521(let key): Certificate.PublicKey(key.publicKey)
        case .ed25519(let key): Certificate.PublicKey(key.publicKey)
        case .rsa(let key, _): Certificate.PublicKey(key.publicKey)
        default: throw SoftwareAuthenticatorError.unsupportedFormat
        }
    }

    static var notCA: Certificate.Extension {
        get throws { try Certificate.Extension(BasicConstraints.notCertificateAuthority, critical: true) }
    }

    var aaguidExtension: Certificate.Extension {
        Certificate.Extension(
            oid: [1, 3, 6, 1, 4, 1, 45724, 1, 1, 4], critical: false, value: ([0x04, 0x10] + aaguid)[...])
    }

    private func packed(_ signed: [UInt8]) throws -> Statement {
        let leaf = try authority.leaf(
            Certificate.PublicKey(authority.attestationKey.publicKey), subject: AttestationAuthority.packedSubject(),
            extensions: [Self.notCA, aaguidExtension])
        let signature = Array(try authority.attestationKey.signature(for: signed).derRepresentation)
        return [("alg", .integer(-7)), ("sig", .bytes(signature)), ("x5c", .array([.bytes(leaf)]))]
    }

    private func fidoU2F(_ clientDataHash: [UInt8]) throws -> Statement {
        guard case .p256(let key) = credential.key else { throw SoftwareAuthenticatorError.unsupportedFormat }
        let leaf = try authority.leaf(
            Certificate.PublicKey(authority.attestationKey.publicKey), subject: AttestationAuthority.packedSubject(),
            extensions: [])
        let message =
            [0x00] + authenticatorData.rpIdHash + clientDataHash + credential.id
            + Array(key.publicKey.x963Representation)
        let signature = Array(try authority.attestationKey.signature(for: message).derRepresentation)
        return [("sig", .bytes(signature)), ("x5c", .array([.bytes(leaf)]))]
    }

    private func apple(_ signed: [UInt8]) throws -> Statement {
        let nonce = Array(SHA256.hash(data: signed))
        // SEQUENCE { [1] EXPLICIT OCTET STRING }
        let value: [UInt8] = [0x30, 0x24, 0xa1, 0x22, 0x04, 0x20] + nonce
        let leaf = try authority.leaf(
            certificatePublicKey(), subject: AttestationAuthority.packedSubject(),
            extensions: [
                Self.notCA,
                Certificate.Extension(oid: [1, 2, 840, 113635, 100, 8, 2], critical: false, value: value[...]),
            ])
        return [("x5c", .array([.bytes(leaf)]))]
    }

    private func androidKey(_ signed: [UInt8], _ clientDataHash: [UInt8]) throws -> Statement {
        // KeyDescription: version 3 in the TEE, keymaster 4 in the TEE, then the challenge.
        let head: [UInt8] = [0x02, 0x01, 0x03, 0x0a, 0x01, 0x01, 0x02, 0x01, 0x04, 0x0a, 0x01, 0x01, 0x04, 0x20]
        // No unique ID, nothing enforced in software.
        let empty: [UInt8] = [0x04, 0x00, 0x30, 0x00]
        // Enforced in the TEE: purpose [1] { SIGN }, origin [702] GENERATED.
        let authorizations: [UInt8] = [
            0xa1, 0x05, 0x31, 0x03, 0x02, 0x01, 0x02, 0xbf, 0x85, 0x3e, 0x03, 0x02, 0x01, 0x00,
        ]
        let body = head + clientDataHash + empty + [0x30, UInt8(authorizations.count)] + authorizations
        let description: [UInt8] = [0x30, UInt8(body.count)] + body
        let leaf = try authority.leaf(
            certificatePublicKey(), subject: AttestationAuthority.packedSubject(),
            extensions: [
                Certificate.Extension(
                    oid: [1, 3, 6, 1, 4, 1, 11129, 2, 1, 17], critical: false, value: description[...])
            ])
        return [
            ("alg", .integer(credential.algorithm.rawValue)), ("sig", .bytes(try credential.key.sign(signed))),
            ("x5c", .array([.bytes(leaf)])),
        ]
    }
}
