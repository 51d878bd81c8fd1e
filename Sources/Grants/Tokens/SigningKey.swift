import Encoding
import Crypto
import Dispatch
import WebAuthnVerify

/// A signing key ready for use.
public struct SigningKey: Sendable {
    /// Key identifier.
    public let kid: String
    /// The private half.
    let privateKey: PrivateKey

    /// A private key of one of the algorithms.
    enum PrivateKey: Sendable {
        case es256(P256.Signing.PrivateKey)
        case edDSA(Curve25519.Signing.PrivateKey)
        case rs256(RSAPrivateKey)
    }

    /// The algorithm.
    var algorithm: SigningAlgorithm {
        switch privateKey {
        case .es256: .es256
        case .edDSA: .edDSA
        case .rs256: .rs256
        }
    }

    /// The JWS protected header, base64url: tokens of this key carry exactly these characters.
    func header(typ: String) -> String {
        JWSHeader.text(alg: algorithm.rawValue, typ: typ, kid: kid)
    }

    /// A compact JWS over `claims` (RFC 7515 §3.1), built directly on the signature primitive, which costs less than a
    /// JWT library.
    func sign(_ claims: [UInt8], typ: String) throws(TokenError) -> String {
        let input = header(typ: typ) + "." + Base64.urlEncode(claims)
        guard let signature = try? signature(for: Array(input.utf8)) else { throw .unavailable("sign") }
        return input + "." + Base64.urlEncode(signature)
    }

    /// A bare signature over `input`.
    func signature(over input: [UInt8]) throws(TokenError) -> [UInt8] {
        guard let signature = try? signature(for: input) else { throw .unavailable("sign") }
        return signature
    }

    private func signature(for input: [UInt8]) throws -> [UInt8] {
        switch privateKey {
        case .es256(let key): Array(try key.signature(for: input).rawRepresentation)
        case .edDSA(let key): Array(try key.signature(for: input))
        case .rs256(let key): try key.signature(for: input)
        }
    }

    /// True if `signature` is this key's over `input`.
    func isValidSignature(_ signature: [UInt8], for input: [UInt8]) -> Bool {
        switch privateKey {
        case .es256(let key):
            guard let parsed = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
            return key.publicKey.isValidSignature(parsed, for: input)
        case .edDSA(let key):
            return signature.count == 64 && key.publicKey.isValidSignature(signature, for: input)
        case .rs256(let key):
            guard let material = try? KeyMaterial.rsa(modulus: key.modulus, exponent: key.exponent, .rs256) else {
                return false
            }
            return material.isValidSignature(signature, for: input)
        }
    }

    /// The left half of the hash that goes with the algorithm (OpenID Connect Core §3.1.3.6); Ed25519 goes with
    /// SHA-512.
    func accessTokenHash(_ accessToken: String) -> String {
        let text = Array(accessToken.utf8)
        return switch privateKey {
        case .es256, .rs256: Base64.urlEncode(Array(SHA256.hash(data: text).prefix(16)))
        case .edDSA: Base64.urlEncode(Array(SHA512.hash(data: text).prefix(32)))
        }
    }
}

/// A key pair just made.
struct NewSigningKey: Sendable {
    let kid: String
    let algorithm: SigningAlgorithm
    let publicJWK: String
    /// ES256 and EdDSA: 32 bytes; RS256: DER. To be sealed.
    let privateBytes: [UInt8]

    /// Makes a key; RSA on a thread that may be busy for some tenths of a second.
    static func make(_ algorithm: SigningAlgorithm) async throws(TokenError) -> NewSigningKey {
        switch algorithm {
        case .es256:
            let key = P256.Signing.PrivateKey()
            let point = key.publicKey.rawRepresentation
            let parameters = [
                ("crv", "P-256"), ("kty", "EC"), ("x", Base64.urlEncode(point.prefix(32))),
                ("y", Base64.urlEncode(point.suffix(32))),
            ]
            return NewSigningKey(algorithm, parameters, Array(key.rawRepresentation))
        case .edDSA:
            let key = Curve25519.Signing.PrivateKey()
            let parameters = [
                ("crv", "Ed25519"), ("kty", "OKP"), ("x", Base64.urlEncode(Array(key.publicKey.rawRepresentation))),
            ]
            return NewSigningKey(algorithm, parameters, Array(key.rawRepresentation))
        case .rs256:
            let made: RSAPrivateKey? = await withCheckedContinuation { continuation in
                DispatchQueue.global().async { continuation.resume(returning: try? RSAPrivateKey()) }
            }
            guard let key = made else { throw .unavailable("RSA key") }
            let parameters = [
                ("e", Base64.urlEncode(key.exponent)), ("kty", "RSA"), ("n", Base64.urlEncode(key.modulus)),
            ]
            return NewSigningKey(algorithm, parameters, key.der)
        }
    }

    /// - Parameter parameters: the required members of the public JWK, sorted by name (RFC 7638 §3).
    private init(_ algorithm: SigningAlgorithm, _ parameters: [(String, String)], _ privateBytes: [UInt8]) {
        self.algorithm = algorithm
        self.privateBytes = privateBytes
        // Every value is base64url or a registered name: nothing to escape.
        let members = parameters.map { "\"\($0)\":\"\($1)\"" }.joined(separator: ",")
        // JWK thumbprint (RFC 7638), shortened to 128 bits: a stable `kid` without a registry.
        kid = Base64.urlEncode(Array(SHA256.hash(data: Array("{\(members)}".utf8)).prefix(16)))
        publicJWK = "{\(members),\"kid\":\"\(kid)\",\"use\":\"sig\",\"alg\":\"\(algorithm.rawValue)\"}"
    }
}
