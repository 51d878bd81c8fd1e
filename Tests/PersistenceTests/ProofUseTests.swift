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

    @Test func `a statement gets a proof as its attributes, the key of the store mixed with the realm`() throws {
        let realm = try #require(UUIDValue("00000000-0000-0003-8000-000000000000"))
        let values = proof(1, isByNonce: false).arguments(in: realm).values
        #expect(
            values.dropLast() == [
                .bytes(Array(repeating: 1, count: 32)), .bool(true), .int(7), .bigint(1_700_000_063_456),
                .bigint(Int64(0x01) << 56 | 3),
            ])
        #expect(ProofUse?.none.arguments(in: realm).values == Array(repeating: .null, count: 6))
    }

    @Test func `what a batch has used up is sent as thumbprint and flags`() {
        #expect(proof(1).packedWhenUsed == Array(repeating: 1, count: 32) + [3])
        #expect(proof(1).packed.count == 81 && proof(1).packed.last == 3)
    }
}
