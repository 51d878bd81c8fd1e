/// A COSE algorithm number (`COSEAlgorithmIdentifier`, WebAuthn L3 §5.8.5; IANA "COSE Algorithms").
public struct COSEAlgorithmIdentifier: RawRepresentable, Hashable, Sendable, Comparable {
    /// The registered number.
    public let rawValue: Int64

    /// Wraps a number, registered or not.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// ECDSA with SHA-256; WebAuthn fixes the curve to P-256.
    public static let es256 = Self(rawValue: -7)
    /// ECDSA with SHA-384; WebAuthn fixes the curve to P-384.
    public static let es384 = Self(rawValue: -35)
    /// ECDSA with SHA-512; WebAuthn fixes the curve to P-521.
    public static let es512 = Self(rawValue: -36)
    /// EdDSA; WebAuthn fixes the curve to Ed25519.
    public static let edDSA = Self(rawValue: -8)
    /// ECDSA with SHA-256 on P-256 (RFC 9864).
    public static let esp256 = Self(rawValue: -9)
    /// ECDSA with SHA-384 on P-384 (RFC 9864).
    public static let esp384 = Self(rawValue: -51)
    /// ECDSA with SHA-512 on P-521 (RFC 9864).
    public static let esp512 = Self(rawValue: -52)
    /// EdDSA on Ed25519 (RFC 9864).
    public static let ed25519 = Self(rawValue: -19)
    /// EdDSA on Ed448 (RFC 9864).
    public static let ed448 = Self(rawValue: -53)
    /// RSASSA-PSS with SHA-256 (RFC 8230).
    public static let ps256 = Self(rawValue: -37)
    /// RSASSA-PSS with SHA-384 (RFC 8230).
    public static let ps384 = Self(rawValue: -38)
    /// RSASSA-PSS with SHA-512 (RFC 8230).
    public static let ps512 = Self(rawValue: -39)
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8812).
    public static let rs256 = Self(rawValue: -257)
    /// RSASSA-PKCS1-v1_5 with SHA-384 (RFC 8812).
    public static let rs384 = Self(rawValue: -258)
    /// RSASSA-PKCS1-v1_5 with SHA-512 (RFC 8812).
    public static let rs512 = Self(rawValue: -259)
    /// RSASSA-PKCS1-v1_5 with SHA-1 (RFC 8812): TPM attestation statements only, and only where a policy says so.
    public static let rs1 = Self(rawValue: -65535)
    /// ECDSA with SHA-256 on secp256k1 (RFC 8812).
    public static let es256K = Self(rawValue: -47)
    /// ML-DSA-44 (RFC 9964). Recognised, never accepted: no library used here verifies it.
    public static let mlDSA44 = Self(rawValue: -48)
    /// ML-DSA-65 (RFC 9964).
    public static let mlDSA65 = Self(rawValue: -49)
    /// ML-DSA-87 (RFC 9964).
    public static let mlDSA87 = Self(rawValue: -50)

    /// Orders by number, for stable listings.
    public static func < (left: Self, right: Self) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// Which credential key algorithms are accepted at all.
///
/// This is a wider question than `pubKeyCredParams` (WebAuthn L3 §7.1 step 20), which says what one ceremony offered.
public struct COSEAlgorithmPolicy: Sendable, Equatable {
    /// The accepted algorithms.
    public var accepted: Set<COSEAlgorithmIdentifier>

    /// Accepts exactly these.
    public init(accepted: Set<COSEAlgorithmIdentifier>) {
        self.accepted = accepted
    }

    /// What authenticators use today: ECDSA on the NIST curves, Ed25519, RS256, PS256, and the RFC 9864 identifiers of
    /// the same.
    public static let standard = Self(accepted: [
        .es256, .es384, .es512, .esp256, .esp384, .esp512, .edDSA, .ed25519, .rs256, .ps256,
    ])

    /// ``standard`` and Ed448, ES256K, ML-DSA-65, ML-DSA-87 and the wider RSA hashes.
    public static let extended = Self(
        accepted: standard.accepted.union([
            .ed448, .es256K, .mlDSA65, .mlDSA87, .rs384, .rs512, .ps384, .ps512,
        ]))
}
