import Crypto
import Encoding
import Foundation
@testable import Grants

private let nested = String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000)

/// The next character of the alphabet: the same bytes, with unused bits that are set.
@Sendable private func nonCanonical(_ part: String) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    guard part.count % 4 != 0, let last = part.last, let index = alphabet.firstIndex(of: last) else { return "none" }
    return part.dropLast() + String(alphabet[index + 1])
}

extension DPoPProofTests {
    static let formats: [ProofCase] =
        [
            ProofCase("as it is", nil) { _ in },
            ProofCase("no field", "fields") { $0.fields = { _ in [] } },
            ProofCase("two fields", "fields") { $0.fields = { [$0, $0] } },
            ProofCase("an empty field beside it", "fields") { $0.fields = { [$0, ""] } },
            ProofCase("two in a field", "comma") { $0.fields = { ["\($0), \($0)"] } },
            ProofCase("a comma behind it", "comma") { $0.fields = { ["\($0),"] } },
        ]
        + ["", " ", "null", "..", "a.b.", "a", "é.é.é", "\0.\0.\0"].map { text in
            ProofCase("field \(text.debugDescription)", "format") { $0.fields = { _ in [text] } }
        }
        + [1, 2].map { count in ProofCase("\(count) parts", "format") { $0.parts = { Array($0[..<count]) } } }
        + [1, 2].map { count in
            ProofCase("\(count) parts more", "format") {
                $0.parts = { parts in parts + Array(repeating: parts[0], count: count) }
            }
        }
        + (0..<3).flatMap { index in
            let spoilers: [(String, @Sendable (String) -> String)] = [
                ("padding", { $0 + "=" }), ("a plus", { "+" + $0.dropFirst() }), ("a slash", { "/" + $0.dropFirst() }),
                ("a blank", { $0.prefix(8) + " " + $0.dropFirst(8) }), ("a tab behind", { $0 + "\t" }),
                ("unused bits", nonCanonical),
            ]
            return spoilers.map { name, spoil in
                ProofCase("\(name) in part \(index)", "format") { draft in
                    // So long that one character has unused bits.
                    while draft.headerJSON.utf8.count % 3 != 1 { draft.headerText = draft.headerJSON + " " }
                    while draft.payloadJSON.utf8.count % 3 != 1 { draft.payloadText = draft.payloadJSON + " " }
                    draft.parts = { parts in
                        var parts = parts
                        parts[index] = spoil(parts[index])
                        return parts
                    }
                }
            }
        }
        + ["", "x", "[]", "\"s\"", "7", "null", #"{"a":\#(nested)}"#, "{} {}", #"{"typ":"dpop+jwt","#].flatMap {
            [.header(text: $0, "format"), .payload(text: $0, "format")]
        }
        + [
            .header(text: "{}", "alg"), .payload(text: "{}", "claims"),
            ProofCase("alg twice", "format") { $0.header.append(("alg", quoted("ES256"))) },
            ProofCase("alg twice, another", "format") { $0.header.append(("alg", quoted("EdDSA"))) },
            ProofCase("kty twice", "format") { $0.jwk.append(("kty", quoted("EC"))) },
            ProofCase("jti twice", "format") { $0.payload.append(("jti", quoted("6f3a"))) },
            ProofCase("htu twice", "format") { $0.payload.append(("htu", quoted("https://r.example/x"))) },
            ProofCase("a name twice, once escaped", "format") { $0.payload.append(("\\u006ati", quoted("x"))) },
            ProofCase("50 unknown claims", nil) { $0.payload += (0..<50).map { ("c\($0)", "\($0)") } },
            ProofCase("65 claims", "format") { $0.payload += (0..<61).map { ("c\($0)", "\($0)") } },
            ProofCase("eight levels", nil) { $0.payload.append(("a", "[[[[[[[1]]]]]]]")) },
            ProofCase("nine levels", "format") { $0.payload.append(("a", "[[[[[[[[1]]]]]]]]")) },
            ProofCase("overlong UTF-8", "format") { draft in
                draft.set(\.payload, "jti", quoted("?"))
                draft.payloadBytes = draft.payloadJSON.utf8.flatMap { $0 == UInt8(ascii: "?") ? [0xc0, 0xaf] : [$0] }
            },
        ]

    static let headers: [ProofCase] =
        ProofCase.header(
            "typ", "typ", nil, quoted("jwt"), quoted("JWT"), quoted("at+jwt"), quoted("dpop"), quoted("dpop+jwt;x"),
            quoted("application/dpop+jwt"), quoted(""), "7", "null")
        + ProofCase.header("typ", nil, quoted("DPoP+JWT"), quoted("dpop\\u002bjwt"))
        + ProofCase.header("crit", "crit or b64", "[]", #"["x"]"#, #"["b64"]"#, "null")
        + ProofCase.header("b64", "crit or b64", "false", "true")
        + ProofCase.header(
            "alg", "alg", nil, quoted("none"), quoted("None"), quoted("HS256"), quoted("HS384"), quoted("ES384"),
            quoted("ES256K"), quoted("RSA1_5"), quoted("es256"), quoted("RS384"), quoted("PS512"), quoted("Ed25519"),
            quoted(""), "7", #"["ES256"]"#)
        + ProofCase.header("kid", nil, quoted("other"), "7") + ProofCase.header("x5c", nil, #"["MIIB"]"#)
        + ProofCase.header("jku", nil, quoted("https://evil.example/jwks"))
        + ProofCase.header("x5u", nil, quoted("https://evil.example/x5u"))
        + [
            ProofCase("a key of bytes that all know", "alg") { draft in
                draft.set(\.header, "alg", quoted("HS256"))
                let secret = ProofKey.es256.bytes("x")
                draft.signer = ProofKey(algorithm: .es256, jwk: []) { input in
                    Array(HMAC<SHA256>.authenticationCode(for: input, using: SymmetricKey(data: secret)))
                }
            },
            ProofCase("ES256 with an RSA key", "key") { $0.jwk = ProofKey.rs256.jwk },
            ProofCase("ES256 with an Ed25519 key", "key") { $0.jwk = ProofKey.edDSA.jwk },
            ProofCase("RS256 with an EC key", "key") { $0.set(\.header, "alg", quoted("RS256")) },
            ProofCase("EdDSA with a P-256 key", "key") { $0.set(\.header, "alg", quoted("EdDSA")) },
            ProofCase("a PS256 signature under RS256", "signature") { draft in
                draft = ProofDraft(.rs256)
                draft.signer = .ps256
            },
            ProofCase("an RS256 signature under PS256", "signature") { draft in
                draft = ProofDraft(.ps256)
                draft.signer = .rs256
            },
        ]
        + ["", quoted("x"), "[]", "null", "7"].map { json in
            ProofCase("jwk \(json)", json.isEmpty ? "jwk" : "jwk") { draft in
                let members = draft.header + (json.isEmpty ? [] : [("jwk", json)])
                draft.headerText = ProofDraft.object(members)
            }
        }

    static let keys: [ProofCase] =
        PublicJWK.privateMembers.flatMap { ProofCase.jwk($0, "private key", quoted("AQ")) }
        + ProofCase.jwk("d", "private key", "null")
        + ProofCase.jwk("kty", "key", nil, quoted("oct"), quoted("ec"), quoted("RSA"), "7")
        + ProofCase.jwk("crv", "key", nil, quoted("p-256"), quoted("P-384"), quoted("secp256k1"), "7")
        + ProofCase.jwk("x", "key", nil, quoted(""), "7", quoted("AAA="), quoted("!"))
        + ProofCase.jwk("y", "key", nil, quoted(""), "null")
        + ProofCase.jwk("alg", "alg of the key", quoted("ES384"), quoted("RS256"), quoted(""), "7", "null")
        + ProofCase.jwk("alg", nil, quoted("ES256"))
        + ProofCase.jwk("use", "use of the key", quoted("enc"), quoted("SIG"), quoted(""), "7")
        + ProofCase.jwk("use", nil, quoted("sig")) + ProofCase.jwk("key_ops", nil, #"["sign"]"#, "[]")
        + ProofCase.jwk("n", nil, quoted("AQAB"), "7")
        + [
            ProofCase("jwk {}", "key") { $0.jwk = [] },
            ProofCase("jwk with kty alone", "key") { $0.jwk = [("kty", quoted("EC"))] },
            ProofCase("x without its leading zero", "key") { draft in
                var key = ProofKey.es256
                while key.bytes("x").first != 0 { key = .p256(P256.Signing.PrivateKey()) }
                draft = ProofDraft(key)
                draft.jwk = ProofKey.ec(Array(key.bytes("x").dropFirst()), key.bytes("y"))
            },
            ProofCase("x of 33 bytes", "key") {
                $0.jwk = ProofKey.ec([0] + ProofKey.es256.bytes("x"), ProofKey.es256.bytes("y"))
            },
            ProofCase("a point off the curve", "key") { draft in
                var y = ProofKey.es256.bytes("y")
                y[31] ^= 1
                draft.jwk = ProofKey.ec(ProofKey.es256.bytes("x"), y)
            },
            ProofCase("the point (0, 0)", "key") {
                $0.jwk = ProofKey.ec(Array(repeating: 0, count: 32), Array(repeating: 0, count: 32))
            },
            ProofCase("a coordinate beyond the field", "key") {
                $0.jwk = ProofKey.ec(Array(repeating: 0xff, count: 32), ProofKey.es256.bytes("y"))
            },
            ProofCase("coordinates of P-384", "key") {
                $0.jwk = ProofKey.ec(Array(repeating: 1, count: 48), Array(repeating: 1, count: 48), crv: "P-384")
            },
        ]
        + rsaKeys + okpKeys

    private static let rsaKeys: [ProofCase] = {
        func modulus(bits: Int) -> [UInt8] {
            var bytes = [UInt8](repeating: 0xa5, count: (bits + 7) / 8)
            bytes[0] = bits % 8 == 0 ? 0x80 : 1 << UInt8(bits % 8 - 1)
            return bytes
        }
        func row(_ name: String, _ n: [UInt8], _ e: [UInt8], _ reason: String) -> ProofCase {
            ProofCase("RSA: \(name)", reason) { draft in
                draft = ProofDraft(.rs256)
                draft.jwk = ProofKey.rsa(modulus: n, exponent: e)
            }
        }
        let n = ProofKey.rs256.bytes("n")
        return [
            row("1024 bits", modulus(bits: 1024), [1, 0, 1], "key"),
            row("2047 bits", modulus(bits: 2047), [1, 0, 1], "key"),
            row("4096 bits, of another key", modulus(bits: 4096), [1, 0, 1], "signature"),
            row("4097 bits", modulus(bits: 4097), [1, 0, 1], "key"),
            row("8192 bits", modulus(bits: 8192), [1, 0, 1], "key"),
            row("an even modulus", Array(n.dropLast()) + [0x02], [1, 0, 1], "key"),
            row("a modulus with a leading zero", [0] + n, [1, 0, 1], "key"),
            row("exponent 0", n, [0], "key"), row("exponent 1", n, [1], "key"), row("exponent 2", n, [2], "key"),
            row("an even exponent", n, [1, 0, 0], "key"), row("no exponent", n, [], "key"),
            row("an exponent with a leading zero", n, [0, 1, 0, 1], "key"),
            row("an exponent of five bytes", n, [1, 0, 0, 0, 1], "key"),
            row("exponent 3, of another key", n, [3], "signature"),
        ]
    }()

    private static let okpKeys: [ProofCase] = {
        func row(_ name: String, _ x: [UInt8]) -> ProofCase {
            ProofCase("Ed25519: \(name)", "key") { draft in
                draft = ProofDraft(.edDSA)
                draft.jwk = ProofKey.okp(x)
            }
        }
        let x = ProofKey.edDSA.bytes("x")
        return [
            row("31 bytes", Array(x.dropLast())), row("33 bytes", x + [0]), row("no bytes", []),
            row("the neutral element", [1] + [UInt8](repeating: 0, count: 31)),
            row("a point of order 2", [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f]),
            row("a point of order 4", [UInt8](repeating: 0, count: 32)),
            row("a y beyond the field", [UInt8](repeating: 0xff, count: 32)),
        ]
    }()

    static let signatures: [ProofCase] = {
        func row(_ name: String, _ change: @escaping @Sendable ([UInt8]) -> [UInt8]) -> ProofCase {
            ProofCase("signature \(name)", "signature") { $0.signature = change }
        }
        let zero = [UInt8](repeating: 0, count: 32)
        return [
            ProofCase("signed by another key", "signature") { $0.signer = .other },
            ProofCase("the key of another under the signature", "signature") { draft in
                draft.jwk = ProofKey.other.jwk
            },
            row("empty") { _ in [] }, row("of r = 0") { zero + $0[32...] }, row("of s = 0") { Array($0[..<32]) + zero },
            row("of r beyond the order") { [UInt8](repeating: 0xff, count: 32) + $0[32...] },
            row("of s beyond the order") { Array($0[..<32]) + [UInt8](repeating: 0xff, count: 32) },
            row("of 63 bytes") { Array($0.dropLast()) }, row("of 65 bytes") { $0 + [0] },
            row("of 128 bytes") { zero + $0[..<32] + zero + $0[32...] },
            row("in DER") { signature in
                (try? P256.Signing.ECDSASignature(rawRepresentation: signature)).map { Array($0.derRepresentation) }
                    ?? []
            },
            row("with one bit changed") { [$0[0] ^ 1] + $0.dropFirst() },
        ]
    }()

    static let claims: [ProofCase] =
        ProofCase.claim("jti", "claims", nil, "7", "null", "[]")
        + ProofCase.claim("jti", "length of jti", quoted(""), quoted(String(repeating: "x", count: 257)))
        + ProofCase.claim("jti", nil, quoted(String(repeating: "x", count: 256)), quoted("é"))
        + ProofCase.claim("jti", "NUL in jti", quoted("a\\u0000b"))
        + ProofCase.claim("jti", "format", quoted("\\ud800"), quoted("\\udc00\\ud800"), quoted("a\0b"), quoted("\n"))
        + ProofCase.claim("jti", "length", quoted(String(repeating: "x", count: 1 << 20)))
        + ProofCase.claim("htm", "htm", quoted("get"), quoted("post"), quoted("PUT"), quoted("POST "), quoted(""))
        + ProofCase.claim("htm", "claims", nil, #"["POST"]"#, "null")
        + ProofCase.claim(
            "iat", "claims", nil, quoted("1800000000"), "1e400", "-1", "9223372036854775808", "null", "true")
        + ProofCase.claim("iat", "claims", "1800000000." + String(repeating: "0", count: 30))
        + ProofCase.claim("iat", "format", "01800000000", "+1800000000", "0x6b49d200", "NaN", ".5")
        + ProofCase.claim("iat", nil, "1800000000.25", "1.8e9", "1800000059", "1799999941")
        + ProofCase.claim("exp", "exp", "1799999940", "0")
        + ProofCase.claim("exp", "claims", "1e400", "-1", quoted("1800000060"), "null")
        + ProofCase.claim("exp", nil, "1799999941", "1800000060")
        + ProofCase.claim("nbf", "nbf", "1800000061")
        + ProofCase.claim("nbf", "claims", "1e400", quoted("1800000000"), "null")
        + ProofCase.claim("nbf", nil, "1800000060", "0")
        + ProofCase.claim("ath", "claims", "7", "null") + ProofCase.claim("nonce", "claims", "7", "null", "[]")

    static let urls: [ProofCase] =
        ProofCase.claim(
            "htu", nil, quoted("https://r.example/connect/token?a=b#c"), quoted("https://r.example/connect/token#"),
            quoted("HTTPS://R.EXAMPLE:443/connect/token"), quoted("https://r.example:/connect/token"),
            quoted("https://r.example/connect/%74oken"), quoted("https://r.example/connect/./token"),
            quoted("https://r.example/x/../connect/token"), quoted("https://r.example/../connect/token"),
            quoted("https://r.e%78ample/connect/token"), quoted("https:\\/\\/r.example\\/connect\\/token"))
        + ProofCase.claim(
            "htu", "htu", quoted("https://r.example/connect/revoke"), quoted("https://other.example/connect/token"),
            quoted("http://r.example/connect/token"), quoted("https://r.example:8443/connect/token"),
            quoted("https://r.example:80/connect/token"), quoted("https://r.example:0443/connect/token"),
            quoted("https://r.example./connect/token"), quoted("https://r.example/connect/token/"),
            quoted("https://r.example/connect//token"), quoted("https://r.example/connect%2Ftoken"),
            quoted("https://r.example/connect/Token"), quoted("https://r.example/connect/token/."),
            quoted("https://r.example/connect/token%"), quoted("https://r.example/connect/token%0"),
            quoted("https://r.example/connect/token%zz"), quoted("https://r.example\\\\connect/token"),
            quoted("https://r.example@evil.example/connect/token"), quoted("https://u@r.example/connect/token"),
            quoted("https:r.example/connect/token"), quoted("https:///r.example/connect/token"),
            quoted("https:////r.example/connect/token"), quoted(" https://r.example/connect/token"),
            quoted("https://r.example/connect/token "), quoted("https://r.example/connect/tok\\u0000en"),
            quoted("https://r.example/connect/tok\\u00ebn"), quoted("https://r.example?/connect/token"),
            quoted("//r.example/connect/token"), quoted("/connect/token"), quoted(""), quoted("javascript:"),
            quoted("javascript:alert(1)"), quoted("https:"), quoted("https://"), quoted("://r.example/connect/token"),
            quoted("https://r.example/connect/token/" + String(repeating: "x", count: 2048)))
        + ProofCase.claim("htu", "length", quoted("https://r.example/" + String(repeating: "x", count: 3072)))
        + ProofCase.claim("htu", "claims", nil, "7", "null", #"["https://r.example/connect/token"]"#)
        + ProofCase.claim("htu", "format", quoted("https://r.example/\\ud800"))
}
