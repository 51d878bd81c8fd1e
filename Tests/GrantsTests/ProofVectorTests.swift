import Foundation
@testable import Grants
import Persistence
import Testing

/// `docs/vectors/proofs.json`: what the verifier says to each proof, and at which step.
@Suite("Proofs of the vectors")
struct ProofVectorTests {
    private struct File: Decodable {
        let cases: [Case]
    }

    private struct Case: Decodable {
        struct Expected: Decodable { let proof: String }
        let name: String
        let method: String
        let url: String
        let token: String?
        let nonce: String?
        let time: Double
        /// Of one that is made.
        let expect: Expected?
        /// Of one that is judged.
        let fields: [String]?
        let answer: String?
        let step: Int?
        let after: String?
    }

    /// The steps of docs/vectors/README.md by what the verifier says for the log.
    private static let steps = [
        "fields": 1, "comma": 1, "length": 2, "format": 2, "typ": 3, "crit or b64": 3, "alg": 4, "jwk": 5,
        "private key": 5, "alg of the key": 5, "use of the key": 5, "key": 5, "claims": 6, "length of jti": 6,
        "NUL in jti": 6, "exp": 6, "nbf": 6, "signature": 7, "htm": 8, "htu": 9, "ath": 10, "nonce": 11,
        "old nonce": 11, "no nonce": 12, "iat": 12,
    ]

    @Test func `each proof is accepted, or refused at its step, when the clock is its case's`() throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../docs/vectors/proofs.json")
        let file = try JSONDecoder().decode(File.self, from: Data(contentsOf: path))
        #expect(file.cases.count >= 80)
        var proofs: [String: DPoPProof] = [:]
        for vector in file.cases {
            do throws(DPoPRefusal) {
                let proof = try Self.verify(vector)
                proofs[vector.name] = proof
                // The database knows which proofs were used: by this.
                let isUsed = vector.after.map { proofs[$0]?.id == proof.id } ?? false
                #expect(vector.step == (isUsed ? 13 : nil), "\(vector.name)")
            } catch {
                // Nobody gave out the nonce with which a proof is made.
                let step = vector.expect != nil && vector.nonce != nil ? 11 : vector.step
                #expect(Self.steps[error.reason] == step, "\(vector.name): \(error.reason)")
                #expect(vector.answer == nil || vector.answer == Self.name(error), "\(vector.name)")
            }
        }
    }

    private static func verify(_ vector: Case) throws(DPoPRefusal) -> DPoPProof {
        guard let url = URL(string: vector.url), let host = url.host else { throw .invalid(reason: "case") }
        let authority = host + (url.port.map { ":\($0)" } ?? "")
        guard let realm = try? Realm.fixture(issuer: "\(url.scheme ?? "")://\(authority)") else {
            throw .invalid(reason: "case")
        }
        let verifier = DPoPVerifier(nonces: DPoPNonces(keyring: .fixture())) { vector.time }
        let target = RequestedURL(realm: realm, host: host, path: url.path(percentEncoded: true))
        return try verifier.verify(
            vector.fields ?? [vector.expect?.proof ?? ""], method: vector.method, url: target,
            accessToken: vector.token, realm: realm)
    }

    private static func name(_ refusal: DPoPRefusal) -> String {
        switch refusal {
        case .invalid: "invalid_dpop_proof"
        case .nonceDue: "use_dpop_nonce"
        }
    }
}
