import Crypto
import Testing
import WebAuthnVerify

private let x = "65eda5a12577c2bae829437fe338701a10aaa375e1bb5b5de108de439c08551d"
private let y = "1e52ed75701163f7f9e40ddf9f341b3dc9ba860af7e0ca7ca7e9eecd0084d19c"
private let edwards = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

private let zeros = String(repeating: "00", count: 31)
private let ones = String(repeating: "ff", count: 30)

private func decode(_ text: String, _ policy: COSEAlgorithmPolicy = .extended) throws(COSEKeyError)
    -> CredentialPublicKey
{
    try CredentialPublicKey(decoding: hex(text).span, policy: policy)
}

/// An RSA COSE key with the given big-endian modulus and exponent.
private func rsaKey(n: [UInt8], e: [UInt8]) -> [UInt8] {
    let length: [UInt8] =
        switch n.count {
        case 0..<24: [0x40 | UInt8(n.count)]
        case 24..<256: [0x58, UInt8(n.count)]
        default: [0x59, UInt8(n.count >> 8), UInt8(n.count & 0xff)]
        }
    return [0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20] + length + n + [0x21, 0x40 | UInt8(e.count)] + e
}

private let malformedKeys: [(String, COSEKeyError)] = [
    // kty, alg and crv must agree.
    ("a5010103262001215820\(x)225820\(y)", .keyTypeMismatch),
    ("a5010303262001215820\(x)225820\(y)", .keyTypeMismatch),
    ("a5010203272001215820\(x)225820\(y)", .keyTypeMismatch),
    ("a5010203262002215820\(x)225820\(y)", .curveMismatch),
    ("a5010203262006215820\(x)225820\(y)", .curveMismatch),
    ("a501020338222001215820\(x)225820\(y)", .curveMismatch),
    ("a4010103272007215820\(edwards)", .curveMismatch),
    // Missing, surplus and repeated parameters.
    ("a4010203262001215820\(x)", .missingParameter),
    ("a4010203262001225820\(y)", .missingParameter),
    ("a401022001215820\(x)225820\(y)", .missingParameter),
    ("a403262001215820\(x)225820\(y)", .missingParameter),
    ("a0", .missingParameter),
    ("a6010203262001215820\(x)225820\(y)235820\(x)", .wrongParameterType),
    ("a6010202410003262001215820\(x)225820\(y)", .wrongParameterType),
    ("a6010203262001215820\(x)225820\(y)616100", .wrongParameterType),
    ("a6010203262001215820\(x)225820\(y)225820\(y)", .cbor(.duplicateKey)),
    ("a60102010203262001215820\(x)225820\(y)", .cbor(.duplicateKey)),
    ("a5010103272006215820\(edwards)225820\(edwards)", .unexpectedParameter),
    // Types and lengths.
    ("a5010203262001215820\(x)22f5", .wrongParameterType),
    ("a5010203634553322001215820\(x)225820\(y)", .wrongParameterType),
    ("a501020326200121581f\(x.dropLast(2))225820\(y)", .wrongLength),
    ("a501020326200121582100\(x)225820\(y)", .wrongLength),
    ("a401010327200621581f\(edwards.dropLast(2))", .wrongLength),
    // Points.
    ("a5010203262001215820\(x)225820\(x)", .invalidPoint),
    ("a5010203262001215820\(zeros)00225820\(zeros)00", .invalidPoint),
    ("a5010203382e2008215820\(x)225820\(y)", .invalidPoint),
    ("a4010103272006215820\(zeros)00", .invalidPoint),
    ("a401010327200621582001\(zeros)", .invalidPoint),
    ("a4010103272006215820ed\(ones)7f", .invalidPoint),
    ("a4010103272006215820ee\(ones)ff", .invalidPoint),
    ("a4010103272006215820c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", .invalidPoint),
    // Around the map.
    ("a5010203262001215820\(x)225820\(y)00", .cbor(.trailingBytes)),
    ("80", .wrongParameterType),
    ("", .cbor(.truncated)),
    ("bf010203262001215820\(x)225820\(y)ff", .cbor(.indefiniteLength)),
]

@Suite("COSE keys")
struct COSEKeyTests {
    @Test func `an ES256 key is read`() throws {
        guard case .p256 = try decode("a5010203262001215820\(x)225820\(y)").material else {
            return #expect(Bool(false))
        }
    }

    @Test func `the RFC 9864 identifier means the same key`() throws {
        guard case .p256 = try decode("a5010203282001215820\(x)225820\(y)").material else {
            return #expect(Bool(false))
        }
        guard case .ed25519 = try decode("a4010103322006215820\(edwards)").material else { return #expect(Bool(false)) }
    }

    @Test func `parameters in another order are accepted`() throws {
        guard case .p256 = try decode("a5032601022001215820\(x)225820\(y)").material else {
            return #expect(Bool(false))
        }
    }

    @Test(
        "malformed keys are refused with the rule that was broken",
        arguments: malformedKeys)
    func malformed(_ text: String, _ expected: COSEKeyError) {
        #expect(throws: expected) { try decode(text) }
    }

    @Test func `RSA moduli are bounded at 2048 and 4096 bits, odd and without leading zeros`() {
        func attempt(_ n: [UInt8], _ e: [UInt8] = [1, 0, 1]) throws {
            _ = try CredentialPublicKey(decoding: rsaKey(n: n, e: e).span)
        }
        func modulus(_ count: Int) -> [UInt8] { [UInt8](repeating: 0xff, count: count) }
        #expect(throws: Never.self) { try attempt(modulus(256)) }
        #expect(throws: Never.self) { try attempt(modulus(512)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt(modulus(128)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt([0x7f] + modulus(255)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt([0x01] + modulus(512)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt(modulus(2048)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt([0x00] + modulus(256)) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt(modulus(255) + [0xfe]) }
        #expect(throws: COSEKeyError.invalidModulus) { try attempt([]) }
        for exponent: [UInt8] in [[], [0], [1], [2], [1, 0], [0, 3], [1, 0, 0, 0, 1]] {
            #expect(throws: COSEKeyError.invalidExponent) { try attempt(modulus(256), exponent) }
        }
        #expect(throws: Never.self) { try attempt(modulus(256), [3]) }
    }

    @Test func `algorithms outside the policy are refused, ML-DSA-44 under every policy`() {
        let ed448 =
            "5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180"
        #expect(throws: COSEKeyError.algorithmNotAccepted) { try decode("a401010338342007215839\(ed448)", .standard) }
        #expect(throws: Never.self) { try decode("a401010338342007215839\(ed448)", .extended) }
        let pub = String(repeating: "00", count: 1312)
        #expect(throws: COSEKeyError.unsupportedAlgorithm) { try decode("a3010703382f20590520\(pub)") }
        #expect(throws: COSEKeyError.unknownAlgorithm) { try decode("a50102031901002001215820\(x)225820\(y)") }
    }

    @Test func `ML-DSA keys have one length per algorithm`() {
        let pub65 = String(repeating: "11", count: 1952), pub87 = String(repeating: "11", count: 2592)
        #expect(throws: Never.self) { try decode("a30107033830205907a0\(pub65)") }
        #expect(throws: Never.self) { try decode("a3010703383120590a20\(pub87)") }
        #expect(throws: COSEKeyError.wrongLength) { try decode("a30107033831205907a0\(pub65)") }
    }
}
