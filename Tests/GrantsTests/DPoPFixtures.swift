import Crypto
import CryptoExtras
import Encoding
import Foundation
@testable import Grants
import Persistence

/// A key that proofs are made with.
struct ProofKey: Sendable {
    let algorithm: ClientKey.Algorithm
    /// Members of the JWK and their JSON.
    let jwk: [Member]
    let sign: @Sendable ([UInt8]) throws -> [UInt8]

    typealias Member = (name: String, json: String)

    static let es256 = p256(P256.Signing.PrivateKey())
    static let other = p256(P256.Signing.PrivateKey())
    static let edDSA = ed25519(Curve25519.Signing.PrivateKey())
    static let rs256 = rsa(.rs256)
    static let ps256 = rsa(.ps256)

    static func p256(_ key: P256.Signing.PrivateKey) -> ProofKey {
        let point = key.publicKey.rawRepresentation
        return ProofKey(
            algorithm: .es256,
            jwk: [
                ("kty", quoted("EC")), ("crv", quoted("P-256")), ("x", encoded(Array(point.prefix(32)))),
                ("y", encoded(Array(point.suffix(32)))),
            ]
        ) { Array(try key.signature(for: $0).rawRepresentation) }
    }

    static func ed25519(_ key: Curve25519.Signing.PrivateKey) -> ProofKey {
        let raw = Array(key.publicKey.rawRepresentation)
        return ProofKey(
            algorithm: .edDSA, jwk: [("kty", quoted("OKP")), ("crv", quoted("Ed25519")), ("x", encoded(raw))]
        ) { Array(try key.signature(for: $0)) }
    }

    private static let rsaKey: _RSA.Signing.PrivateKey = {
        do {
            return try _RSA.Signing.PrivateKey(keySize: .bits2048)
        } catch {
            preconditionFailure("\(error)")
        }
    }()

    private static func rsa(_ algorithm: ClientKey.Algorithm) -> ProofKey {
        do {
            let parts = try rsaKey.publicKey.getKeyPrimitives()
            let jwk = rsa(modulus: Array(parts.modulus), exponent: Array(parts.publicExponent))
            return ProofKey(algorithm: algorithm, jwk: jwk) { input in
                Array(
                    try rsaKey.signature(
                        for: SHA256.hash(data: input), padding: algorithm == .rs256 ? .insecurePKCS1v1_5 : .PSS
                    ).rawRepresentation)
            }
        } catch {
            preconditionFailure("\(error)")
        }
    }

    static func rsa(modulus: [UInt8], exponent: [UInt8]) -> [Member] {
        [("kty", quoted("RSA")), ("n", encoded(modulus)), ("e", encoded(exponent))]
    }

    /// A public key of Ed25519 as JWK.
    static func okp(_ x: [UInt8]) -> [Member] {
        [("kty", quoted("OKP")), ("crv", quoted("Ed25519")), ("x", encoded(x))]
    }

    /// A public key of P-256 as JWK.
    static func ec(_ x: [UInt8], _ y: [UInt8], crv: String = "P-256") -> [Member] {
        [("kty", quoted("EC")), ("crv", quoted(crv)), ("x", encoded(x)), ("y", encoded(y))]
    }

    /// A coordinate or other value of the JWK.
    func bytes(_ name: String) -> [UInt8] {
        let text = jwk.first { $0.name == name }?.json.dropFirst().dropLast() ?? ""
        return Base64.urlDecode(text) ?? []
    }
}

/// As a JSON string; the text needs no escapes.
func quoted(_ text: String) -> String { "\"\(text)\"" }

private func encoded(_ bytes: [UInt8]) -> String { quoted(Base64.urlEncode(bytes)) }

/// A right proof for `POST https://r.example/connect/token`, to be spoiled before it is made.
struct ProofDraft: Sendable {
    var key = ProofKey.es256
    /// What signs instead of the key.
    var signer: ProofKey?
    var header: [ProofKey.Member]
    /// Members of `jwk`; they take the place of the key's.
    var jwk: [ProofKey.Member]
    var payload: [ProofKey.Member]
    /// What stands there instead.
    var headerText: String?
    var payloadText: String?
    /// Bytes that follow the text of a part.
    var payloadBytes: [UInt8]?
    var signature: @Sendable ([UInt8]) -> [UInt8] = { $0 }
    /// Header, payload and signature, encoded; the parts that are sent.
    var parts: @Sendable ([String]) -> [String] = { $0 }
    var fields: @Sendable (String) -> [String] = { [$0] }

    static let now = 1_800_000_000.0

    init(_ key: ProofKey = .es256, jti: String = "6f3a", iat: Double = now) {
        self.key = key
        header = [("typ", quoted("dpop+jwt")), ("alg", quoted(key.algorithm.rawValue))]
        jwk = key.jwk
        payload = [
            ("jti", quoted(jti)), ("htm", quoted("POST")), ("htu", quoted("https://r.example/connect/token")),
            ("iat", "\(Int(iat))"),
        ]
    }

    /// Puts a member in the place of the one of the same name; `nil` removes it.
    mutating func set(_ part: WritableKeyPath<ProofDraft, [ProofKey.Member]>, _ name: String, _ json: String?) {
        let index = self[keyPath: part].firstIndex { $0.name == name }
        if let index { self[keyPath: part].remove(at: index) }
        if let json { self[keyPath: part].insert((name, json), at: index ?? self[keyPath: part].count) }
    }

    /// The text of the header, unless another stands there.
    var headerJSON: String { headerText ?? Self.object(header + [("jwk", Self.object(jwk))]) }
    var payloadJSON: String { payloadText ?? Self.object(payload) }

    static func object(_ members: [ProofKey.Member]) -> String {
        "{" + members.map { "\"\($0.name)\":\($0.json)" }.joined(separator: ",") + "}"
    }

    /// The proof itself.
    func text() throws -> String {
        let input = [Array(headerJSON.utf8), payloadBytes ?? Array(payloadJSON.utf8)].map { Base64.urlEncode($0) }
        let signed = signature(try (signer ?? key).sign(Array(input.joined(separator: ".").utf8)))
        return parts(input + [Base64.urlEncode(signed)]).joined(separator: ".")
    }

    /// Verifies it.
    func verify(
        at now: Double = now, realm: Realm? = nil, url: RequestedURL? = nil, method: String = "POST",
        accessToken: String? = nil, keyring: Keyring = .fixture()
    ) throws -> Result<DPoPProof, DPoPRefusal> {
        let realm = try realm ?? .fixture(id: Self.realmID)
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: keyring)) { now }
        let url = url ?? RequestedURL(realm: realm, host: "r.example", path: "/connect/token")
        let fields = fields(try text())
        return Result { () throws(DPoPRefusal) in
            try verifier.verify(fields, method: method, url: url, accessToken: accessToken, realm: realm)
        }
    }

    static let realmID = UUIDValue.random()
}
