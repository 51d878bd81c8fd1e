import Crypto
import Encoding
import Foundation
import Persistence

/// The key of a headless app, made for one run, and the proofs of possession that it signs (RFC 9449 §4.2).
struct ProofKey {
    private let key = P256.Signing.PrivateKey()

    /// - Parameters:
    ///   - method: of the request that the proof goes with.
    ///   - url: of the request.
    ///   - accessToken: the token that goes with it, if any.
    ///   - nonce: the one that the server asked for, if it did.
    func proof(method: String, url: String, accessToken: String?, nonce: String?) throws -> String {
        var claims = JSONWriter(reserving: 256)
        claims.member("jti", Base64.urlEncode(randomBytes(16)))
        claims.member("htm", method)
        claims.member("htu", String(url.prefix { $0 != "?" }))
        claims.member("iat", Int(Date().timeIntervalSince1970))
        claims.member("ath", accessToken.map { Base64.urlEncode(Array(SHA256.hash(data: Array($0.utf8)))) })
        claims.member("nonce", nonce)
        return try sign(type: "dpop+jwt", claims.finish())
    }

    /// A compact JWS with the public key in its header.
    func sign(type: String, _ claims: [UInt8]) throws -> String {
        let point = Array(key.publicKey.rawRepresentation)
        var jwk = JSONWriter(reserving: 160)
        jwk.member("kty", "EC")
        jwk.member("crv", "P-256")
        jwk.member("x", Base64.urlEncode(Array(point[..<32])))
        jwk.member("y", Base64.urlEncode(Array(point[32...])))
        var header = JSONWriter(reserving: 256)
        header.member("typ", type)
        header.member("alg", "ES256")
        header.member("jwk", json: jwk.finish())
        let input = Base64.urlEncode(header.finish()) + "." + Base64.urlEncode(claims)
        let signature = try key.signature(for: Data(input.utf8))
        return input + "." + Base64.urlEncode(Array(signature.rawRepresentation))
    }
}
