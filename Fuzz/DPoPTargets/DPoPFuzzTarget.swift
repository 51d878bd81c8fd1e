import Crypto
import Encoding
import Foundation
import Grants

/// What of proofs of possession can be fuzzed: each target takes any bytes, must neither trap nor take long, and checks
/// what must hold afterwards.
///
/// The fuzzer and the tests that replay its corpora run the same functions.
public enum DPoPFuzzTarget: String, CaseIterable, Sendable {
    /// A proof as it arrives.
    case dpopProof
    /// Header and payload of a proof, with a NUL between them, which are signed before they are verified.
    case dpopClaims

    /// Runs the target. - Returns: what does not hold, or nil.
    public func run(_ bytes: [UInt8]) -> String? {
        switch self {
        case .dpopProof: Self.proof(bytes)
        case .dpopClaims: Self.claims(bytes)
        }
    }

    /// Whether a proof holds: a seed that does not leads the fuzzer nowhere.
    public func accepts(_ bytes: [UInt8]) -> Bool {
        switch self {
        case .dpopProof: DPoPFuzzScene.verify(String(decoding: bytes, as: UTF8.self)) != nil
        case .dpopClaims: Self.signed(bytes).flatMap(DPoPFuzzScene.verify) != nil
        }
    }

    private static func proof(_ bytes: [UInt8]) -> String? {
        guard let proof = DPoPFuzzScene.verify(String(decoding: bytes, as: UTF8.self)) else { return nil }
        return DPoPFuzzScene.thumbprints.contains(proof.thumbprint) ? nil : "a forged proof holds"
    }

    private static func claims(_ bytes: [UInt8]) -> String? {
        guard let proof = signed(bytes).flatMap(DPoPFuzzScene.verify) else { return nil }
        struct Payload: Decodable {
            let jti: String
            let htm: String
            let iat: Double
            let nonce: String?
        }
        // Another reader sees the same claims.
        guard let payload = try? JSONDecoder().decode(Payload.self, from: Data(bytes.drop { $0 != 0 }.dropFirst()))
        else {
            return "no JSON, and yet a proof"
        }
        let id = Array(SHA256.hash(data: proof.thumbprint + Array(payload.jti.utf8)))
        return id == proof.id && payload.htm == "POST" && (1...256).contains(payload.jti.utf8.count)
            && proof.isByNonce == (payload.nonce != nil) && (proof.isByNonce || proof.time == payload.iat)
            && abs(proof.time - DPoPFuzzScene.now) <= 300 ? nil : "what holds is not what was said"
    }

    private static func signed(_ bytes: [UInt8]) -> String? {
        let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        return try? DPoPFuzzScene.signed(parts.map { Base64.urlEncode($0) }.joined(separator: "."))
    }
}
