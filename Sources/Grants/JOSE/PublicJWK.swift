import Crypto
import Encoding
import WebAuthnVerify

/// The public key in the header of a JWS (RFC 7517 §4), of the algorithm that the header names.
struct PublicJWK: Sendable {
    let material: KeyMaterial
    /// RFC 7638 with SHA-256, 32 bytes.
    let thumbprint: [UInt8]
    /// Of a P-256 key: x and y, 32 bytes each; empty for others.
    let coordinates: [UInt8]

    /// What only a private or a symmetric key has (RFC 7518 §6.2.2, §6.3.2, §6.4; `priv` of RFC 9964): a client that
    /// sends one has a fault that it must learn of.
    static let privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"]

    /// `nil` for a key of another type or curve than the algorithm's, and for an invalid key: a point off its curve,
    /// coordinates of another length, RSA outside of 2048 to 4096 bits.
    init?(_ jwk: JOSEObject, _ algorithm: ClientKey.Algorithm) {
        guard let kty = jwk.text("kty") else { return nil }
        let key = ClientKey(
            kty: kty, crv: jwk.text("crv"), x: jwk.text("x"), y: jwk.text("y"), n: jwk.text("n"),
            e: jwk.text("e"), kid: nil, alg: nil)
        guard let material = key.material(for: algorithm) else { return nil }
        self.material = material
        coordinates =
            algorithm == .es256 ? [key.x, key.y].flatMap { $0.flatMap { Base64.urlDecode($0[...]) } ?? [] } : []
        thumbprint = Array(SHA256.hash(data: Array(Self.canonicalJWK(key).utf8)))
    }

    /// The members that RFC 7638 §3.2 and RFC 8037 §2 name, in their order. Each text is the only one of its bytes and
    /// needs no escape, since base64url was read strictly.
    private static func canonicalJWK(_ key: ClientKey) -> String {
        let members: [(String, String?)] = [
            ("crv", key.crv), ("e", key.e), ("kty", key.kty), ("n", key.n), ("x", key.x), ("y", key.y),
        ]
        let ofType: Set<String> =
            switch key.kty {
            case "RSA": ["e", "kty", "n"]
            case "EC": ["crv", "kty", "x", "y"]
            default: ["crv", "kty", "x"]
            }
        let texts = members.compactMap { name, value in
            ofType.contains(name) ? value.map { #""\#(name)":"\#($0)""# } : nil
        }
        return "{" + texts.joined(separator: ",") + "}"
    }
}
