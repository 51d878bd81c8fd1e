import SwiftASN1
import X509

/// The parts of an attestation certificate that the statement formats check (RFC 5280 §4.1).
///
/// Path validation reads the same bytes with swift-certificates, which is stricter. This reader exists for certificates
/// that library cannot represent: U2F tokens with negative serial numbers, and keys of algorithms it lacks. Their
/// statements must still be verified, though not trusted.
struct AttestationCertificate {
    let der: [UInt8]
    /// Zero-based, as encoded: 2 is version 3.
    let version: Int
    let subject: DistinguishedName
    let subjectPublicKeyInfo: ArraySlice<UInt8>
    let extensions: [Certificate.Extension]

    /// Parses one DER certificate.
    init(_ der: [UInt8]) throws(AttestationError) {
        do {
            let tbs = try DER.sequence(try DER.parse(der), identifier: .sequence) { (nodes) in
                guard let tbs = nodes.next(), nodes.next() != nil, nodes.next() != nil else {
                    throw AttestationError.malformedCertificate
                }
                return tbs
            }
            (version, subject, subjectPublicKeyInfo, extensions) = try Self.read(tbs)
        } catch {
            throw .malformedCertificate
        }
        self.der = der
    }

    /// `TBSCertificate`. The serial number, issuer and validity are for path validation and only passed over.
    private static func read(
        _ tbs: ASN1Node
    ) throws -> (Int, DistinguishedName, ArraySlice<UInt8>, [Certificate.Extension]) {
        try DER.sequence(tbs, identifier: .sequence) { (nodes) in
            let version = try DER.decodeDefaultExplicitlyTagged(
                &nodes, tagNumber: 0, tagClass: .contextSpecific, defaultValue: 0
            ) { (node) in try Int(derEncoded: node) }
            for _ in 0..<4 { _ = try ASN1Any(derEncoded: &nodes) }  // serialNumber, signature, issuer, validity
            guard let name = nodes.next(), let key = nodes.next() else { throw AttestationError.malformedCertificate }
            let subject = try DistinguishedName(derEncoded: name)
            // [1] and [2] are unique identifiers (RFC 5280 §4.1.2.8), which no one uses; [3] the extensions.
            var extensions: [Certificate.Extension] = []
            while let node = nodes.next() {
                guard node.identifier.tagNumber == 3 else { continue }
                guard case .constructed(let inner) = node.content, let list = inner.first(where: { _ in true }) else {
                    throw AttestationError.malformedCertificate
                }
                extensions = try DER.sequence(of: Certificate.Extension.self, identifier: .sequence, rootNode: list)
            }
            return (version, subject, key.encodedBytes, extensions)
        }
    }

    /// One extension; nil if absent. Certificates that repeat one are not valid (RFC 5280 §4.2) and fail path
    /// validation.
    func `extension`(_ oid: ASN1ObjectIdentifier) -> Certificate.Extension? {
        extensions.first { $0.oid == oid }
    }

    /// §8.2.1, §8.3.1: version 3 and not a CA. An absent basicConstraints means "not a CA" (RFC 5280 §4.2.1.9).
    func isVersion3EndEntity() -> Bool {
        guard version == 2 else { return false }
        guard let found = `extension`(.X509ExtensionID.basicConstraints) else { return true }
        return (try? BasicConstraints(found)) == .notCertificateAuthority
    }

    /// `id-fido-gen-ce-aaguid` (§8.2.1): if present not critical, and an OCTET STRING of the AAGUID.
    func aaguidAgrees(with aaguid: [UInt8]) throws(AttestationError) {
        guard let found = `extension`(.fidoAAGUID) else { return }
        guard !found.critical else { throw .certificateRequirements }
        guard let value = try? ASN1OctetString(derEncoded: found.value) else { throw .malformedCertificate }
        guard Array(value.bytes) == aaguid else { throw .aaguidMismatch }
    }

    /// The values of one attribute of the subject, in order.
    func subject(_ attribute: ASN1ObjectIdentifier) -> [String] {
        subject.flatMap { Array($0) }.filter { $0.type == attribute }.compactMap { String($0.value) }
    }
}

extension ASN1ObjectIdentifier {
    /// id-fido-gen-ce-aaguid.
    static let fidoAAGUID: Self = [1, 3, 6, 1, 4, 1, 45724, 1, 1, 4]
    /// The nonce extension of Apple anonymous attestation.
    static let appleNonce: Self = [1, 2, 840, 113635, 100, 8, 2]
    /// The Android key description.
    static let androidKeyDescription: Self = [1, 3, 6, 1, 4, 1, 11129, 2, 1, 17]
    /// id-ce-certificatePolicies.
    static let certificatePolicies: Self = [2, 5, 29, 32]
    /// tcg-kp-AIKCertificate.
    static let tcgAIKCertificate: Self = [2, 23, 133, 8, 3]
    /// tcg-at-tpmManufacturer.
    static let tcgTPMManufacturer: Self = [2, 23, 133, 2, 1]
    /// tcg-at-tpmModel.
    static let tcgTPMModel: Self = [2, 23, 133, 2, 2]
    /// tcg-at-tpmVersion.
    static let tcgTPMVersion: Self = [2, 23, 133, 2, 3]
    /// id-Ed448.
    static let ed448: Self = [1, 3, 101, 113]
    /// id-ml-dsa-65.
    static let mlDSA65: Self = [2, 16, 840, 1, 101, 3, 4, 3, 18]
    /// id-ml-dsa-87.
    static let mlDSA87: Self = [2, 16, 840, 1, 101, 3, 4, 3, 19]
}
