import Crypto

extension CredentialRecord {
    /// A record to verify `response` against when there is none, so that an unknown credential costs what a bad
    /// signature does and fails at the same step (WebAuthn L3 §14.6.3, *Privacy leak via credential IDs*).
    ///
    /// It agrees with the response in everything compared before the signature. Its private key is unknown: the point
    /// is found by hashing a text, and finding its logarithm is as hard as for any other point. Verification always
    /// throws.
    public static func decoy(for response: AuthenticationResponseJSON) -> CredentialRecord {
        let flags = (try? AuthenticatorData(parsing: response.authenticatorData.span))?.flags ?? []
        return CredentialRecord(
            id: response.id, publicKey: decoyPublicKey, signCount: 0,
            backupEligible: flags.contains(.backupEligible), userHandle: response.userHandle)
    }

    /// An ES256 COSE key whose x-coordinate is the first hash of the text and a counter that lies on the curve.
    private static let decoyPublicKey: [UInt8] = {
        for counter in UInt8.min...UInt8.max {
            let x = Array(SHA256.hash(data: Array("postern decoy credential".utf8) + [counter]))
            guard let key = try? P256.Signing.PublicKey(compressedRepresentation: [0x02] + x) else { continue }
            let y = Array(key.rawRepresentation.suffix(32))
            return [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + x + [0x22, 0x58, 0x20] + y
        }
        // Half of all x-coordinates lie on the curve, so this is not reached; an empty key would verify nothing either.
        return []
    }()
}
