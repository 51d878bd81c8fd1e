import Testing

@testable import Persistence

@Suite("Proofs of possession as statements take them")
struct ProofUseTests {
    private func proof(_ id: UInt8, at time: Double = 1_700_000_123.4567, isByNonce: Bool = true) -> ProofUse {
        ProofUse(
            thumbprint: Array(repeating: 1, count: 32), id: [id] + Array(repeating: 0, count: 30) + [9], time: time,
            isByNonce: isByNonce, binds: true)
    }

    @Test func `proofs of one slot go together, in the order of their keys as PostgreSQL has them`() throws {
        let uses = try #require(ProofUses([proof(0x02), proof(0x80), proof(0x01)]))
        #expect(uses.keys == [.min, 0x01 << 56, 0x02 << 56])
        #expect(uses.usedBy.count == 3 && Set(uses.usedBy).count == 3)
        #expect(Int64(uses.slot) == 1_700_000_123_456 / 300_000 % 10)
    }

    @Test func `each mark stays with its key, and is what the packed form says`() throws {
        let proofs = [proof(3), proof(2)]
        let uses = try #require(ProofUses(proofs))
        for (use, proof) in zip(uses.usedBy, proofs.reversed()) {
            #expect(withUnsafeBytes(of: use.bigEndian, Array.init) == Array(proof.packed[72..<80]))
        }
    }

    @Test func `the store must have begun a minute before an iat, and before a nonce`() throws {
        #expect(ProofUses([proof(1), proof(2)])?.before == 1_700_000_123_456)
        #expect(ProofUses([proof(1), proof(2, isByNonce: false)])?.before == 1_700_000_063_456)
    }

    @Test func `one proof, and proofs of several slots, are no set`() {
        #expect(ProofUses([]) == nil && ProofUses([proof(1)]) == nil)
        let proofs = [proof(1), proof(2, at: 1_700_000_500), proof(3, at: 1_700_000_501)]
        #expect(ProofUses(proofs) == nil)
        #expect(ProofUses.commonestPeriod(of: proofs) == proofs[1].period)
        #expect(ProofUses.commonestPeriod(of: Array(proofs[1...])) == nil)
    }

    @Test func `a statement gets a proof as numbers of a fixed width`() throws {
        let realm = try #require(UUIDValue("00000000-0000-0003-8000-000000000000"))
        let text = proof(1, isByNonce: false).asText(in: realm)
        let key = Int64(0x01) << 56 | 3
        let thumbprint = String(repeating: "01", count: 32)
        let parts = [(64, thumbprint), (1, "1"), (2, "7"), (20, "1700000063456"), (20, "\(key)")]
        var rest = Substring(text)
        for (width, value) in parts {
            #expect(rest.prefix(width).drop { $0 == " " } == value)
            rest = rest.dropFirst(width)
        }
        #expect(rest.count == 20 && Int64(rest.drop { $0 == " " }) != nil)
        #expect(proof(0x80).asText(in: realm).utf8.count == 127)
    }

    @Test func `what a batch has used up is sent as thumbprint and flags`() {
        #expect(proof(1).packedWhenUsed == Array(repeating: 1, count: 32) + [3])
        #expect(proof(1).packed.count == 81 && proof(1).packed.last == 3)
    }
}
