import SwiftASN1
import X509

extension AttestationStatement {
    /// Android key attestation (WebAuthn L3 §8.4): the leaf certifies the credential key and describes how it is kept.
    ///
    /// The authorisations are taken from the union of the software- and TEE-enforced lists. Whether the hardware
    /// enforced them, and the state of the device's boot, is a question for a relying party that requires attestation,
    /// not for this one.
    func verifyAndroidKey(_ key: CredentialPublicKey) throws(AttestationError) -> AttestationType {
        guard attStmt.hasOnly("alg", "sig", "x5c") else { throw .malformedStatement }
        let alg = try algorithm(), signature = try signature(), certificates = try certificates()
        guard let leaf = certificates.first else { throw .malformedStatement }
        guard let leafKey = leaf.key(for: alg) else { throw .algorithmMismatch }
        guard leafKey.isValidSignature(signature, for: signedData) else { throw .invalidSignature }
        guard leaf.certifies(key) else { throw .publicKeyMismatch }
        guard let value = leaf.extension(.androidKeyDescription)?.value,
            let description = AndroidKeyDescription(value)
        else { throw .keyDescription }
        guard description.attestationChallenge == clientDataHash else { throw .nonceMismatch }
        let lists = [description.softwareEnforced, description.teeEnforced]
        // A key usable by all applications is not scoped to the RP ID.
        guard !lists.contains(where: \.allApplications) else { throw .keyDescription }
        guard lists.contains(where: { $0.origin == AndroidKeyDescription.originGenerated }),
            lists.allSatisfy({
                ($0.origin ?? AndroidKeyDescription.originGenerated) == AndroidKeyDescription.originGenerated
            }),
            lists.contains(where: { $0.purposes.contains(AndroidKeyDescription.purposeSign) }),
            lists.allSatisfy({ $0.purposes.allSatisfy { $0 == AndroidKeyDescription.purposeSign } })
        else { throw .keyDescription }
        return trustPath(certificates)
    }
}

/// The parts of Android key attestation's `KeyDescription` that WebAuthn checks.
struct AndroidKeyDescription {
    /// KM_ORIGIN_GENERATED.
    static let originGenerated = 0
    /// KM_PURPOSE_SIGN.
    static let purposeSign = 2

    /// `AuthorizationList`: members are context tags, all optional, and most are of no interest here.
    struct AuthorizationList {
        var purposes: [Int] = []
        var allApplications = false
        var origin: Int?

        enum Tag { static let purpose: UInt = 1, allApplications: UInt = 600, origin: UInt = 702 }

        init(_ node: ASN1Node) throws {
            guard node.identifier == .sequence, case .constructed(let members) = node.content else {
                throw AttestationError.keyDescription
            }
            for member in members where member.identifier.tagClass == .contextSpecific {
                guard case .constructed(let inner) = member.content else { throw AttestationError.keyDescription }
                var iterator = inner.makeIterator()
                guard let value = iterator.next(), iterator.next() == nil else { throw AttestationError.keyDescription }
                switch member.identifier.tagNumber {
                case Tag.purpose: purposes = try DER.set(of: Int.self, identifier: .set, rootNode: value)
                case Tag.allApplications: allApplications = true
                case Tag.origin: origin = try Int(derEncoded: value)
                default: continue
                }
            }
        }
    }

    var attestationChallenge: [UInt8]
    var softwareEnforced: AuthorizationList
    var teeEnforced: AuthorizationList

    /// Reads the extension value; nil unless it is the DER of a `KeyDescription`.
    init?(_ value: ArraySlice<UInt8>) {
        guard
            let parsed = try? DER.sequence(
                try DER.parse(value), identifier: .sequence,
                { (nodes) in
                    _ = try Int(derEncoded: &nodes)  // attestationVersion
                    _ = try ASN1Any(derEncoded: &nodes)  // attestationSecurityLevel
                    _ = try Int(derEncoded: &nodes)  // keymasterVersion
                    _ = try ASN1Any(derEncoded: &nodes)  // keymasterSecurityLevel
                    let challenge = try ASN1OctetString(derEncoded: &nodes)
                    _ = try ASN1OctetString(derEncoded: &nodes)  // uniqueId
                    guard let software = nodes.next(), let tee = nodes.next() else {
                        throw AttestationError.keyDescription
                    }
                    return (Array(challenge.bytes), try AuthorizationList(software), try AuthorizationList(tee))
                })
        else { return nil }
        (attestationChallenge, softwareEnforced, teeEnforced) = parsed
    }
}
