/// Why a `credentialPublicKey` is not a usable COSE key (RFC 9052 §7, RFC 9053, WebAuthn L3 §5.8.5 and §6.5.1.1).
public enum COSEKeyError: Error, Equatable, Sendable {
    /// The bytes are not the CBOR this library reads.
    case cbor(CBORError)
    /// A parameter the key type needs is absent.
    case missingParameter
    /// A parameter of the wrong CBOR type.
    case wrongParameterType
    /// A parameter that does not belong: a text label, a private key, `key_ops`, anything WebAuthn says is absent.
    case unexpectedParameter
    /// `kty` and `alg` do not belong together.
    case keyTypeMismatch
    /// `crv` is not the curve WebAuthn prescribes for `alg`.
    case curveMismatch
    /// A number no rule of this library knows.
    case unknownAlgorithm
    /// Known, but nothing here can verify it (ML-DSA-44).
    case unsupportedAlgorithm
    /// Known and verifiable, but not accepted by the ``COSEAlgorithmPolicy``.
    case algorithmNotAccepted
    /// A coordinate or key of the wrong length.
    case wrongLength
    /// A point that is not on its curve, or one of small order.
    case invalidPoint
    /// A modulus outside 2048 to 4096 bits, even, or with a leading zero.
    case invalidModulus
    /// An exponent that is even, below 3, too long, or with a leading zero.
    case invalidExponent
}
