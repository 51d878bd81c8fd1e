import Encoding
import Crypto
import WebAuthnVerify

/// A public key of a client as an administrator registered it (RFC 7517 §4).
public struct ClientKey: Sendable, Equatable, Decodable {
    let kty: String
    let crv: String?
    let x: String?
    let y: String?
    let n: String?
    let e: String?
    let kid: String?
    let alg: String?

    /// The algorithms in which a client may sign its assertions.
    public enum Algorithm: String, Sendable, CaseIterable {
        case es256 = "ES256"
        case edDSA = "EdDSA"
        case ps256 = "PS256"
        case rs256 = "RS256"
    }

    /// All of them, as a challenge lists the algorithms of proofs (RFC 9449 §7.1).
    package static let algorithms = Algorithm.allCases.map(\.rawValue).joined(separator: " ")

    /// True if `signature` is this key's over `input`, in that algorithm. An invalid key verifies nothing.
    func isValidSignature(_ signature: [UInt8], for input: [UInt8], _ algorithm: Algorithm) -> Bool {
        guard alg == nil || alg == algorithm.rawValue else { return false }
        return material(for: algorithm)?.isValidJWSSignature(signature, for: input) ?? false
    }

    /// The key itself; `nil` where type, curve, lengths or values do not fit the algorithm (RFC 7518 §6, RFC 8037 §2).
    func material(for algorithm: Algorithm) -> KeyMaterial? {
        switch (algorithm, kty) {
        case (.es256, "EC"):
            guard crv == "P-256", let x = bytes(x), let y = bytes(y), x.count == 32, y.count == 32 else { return nil }
            return (try? P256.Signing.PublicKey(rawRepresentation: x + y)).map { .p256($0) }
        case (.edDSA, "OKP"):
            guard crv == "Ed25519", let x = bytes(x) else { return nil }
            return try? .ed25519(raw: x)
        case (.rs256, "RSA"), (.ps256, "RSA"):
            guard let n = bytes(n), let e = bytes(e) else { return nil }
            return try? .rsa(modulus: n, exponent: e, algorithm == .rs256 ? .rs256 : .ps256)
        default:
            return nil
        }
    }

    private func bytes(_ text: String?) -> [UInt8]? {
        text.flatMap { Base64.urlDecode($0) }
    }
}

extension KeyMaterial {
    /// True if `signature` is this key's over `input`, in the form of JWS: where WebAuthn has DER, r ‖ s of the curve's
    /// width (RFC 7518 §3.4).
    func isValidJWSSignature(_ signature: [UInt8], for input: [UInt8]) -> Bool {
        guard case .p256(let key) = self else { return isValidSignature(signature, for: input) }
        guard signature.count == 64, let parsed = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else {
            return false
        }
        return key.isValidSignature(parsed, for: input)
    }
}
