/// A proof of possession (RFC 9449) as a statement takes it: it is used up there, and what the statement writes is
/// bound to its key.
public struct ProofUse: Sendable, Equatable {
    /// The key: its JWK thumbprint (RFC 7638), SHA-256, 32 bytes.
    public let thumbprint: [UInt8]
    /// What it is used up as: SHA-256 over thumbprint and `jti`, 32 bytes.
    let id: [UInt8]
    /// Seconds since the epoch.
    let time: Double
    /// Whether ``time`` is that of a nonce.
    let isByNonce: Bool
    /// Whether a session that the statement opens or refreshes is bound to the key.
    public let binds: Bool
    /// Of this request: a statement that is run again for it finds the proof fresh again.
    fileprivate let mark = nextRequestMark()

    public init(thumbprint: [UInt8], id: [UInt8], time: Double, isByNonce: Bool, binds: Bool) {
        self.thumbprint = thumbprint
        self.id = id
        self.time = time
        self.isByNonce = isByNonce
        self.binds = binds
    }

    /// A packed proof, as functions take it that use up a proof themselves: 81 bytes.
    var packed: [UInt8] {
        thumbprint + id + Self.bytes(milliseconds) + Self.bytes(mark) + [flags]
    }

    /// What `postern.rotate_sessions` takes of a proof that `postern.mark_proofs` uses up: 33 bytes.
    var packedWhenUsed: [UInt8] { thumbprint + [flags] }

    private static func bytes(_ number: Int64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian, Array.init) }
    private var milliseconds: Int64 { Int64(exactly: (time * 1000).rounded(.down)) ?? 0 }
    private var flags: UInt8 { (isByNonce ? 1 : 0) | (binds ? 2 : 0) }
}

/// Proofs that one statement uses up, as `postern.mark_proofs` takes them.
struct ProofUses: Sendable {
    /// Of the store, where all of them are: a ring of ten of five minutes.
    let slot: Int32
    /// The store must have begun before, in milliseconds: an `iat` may be a minute ahead of its use.
    let before: Int64
    /// ``ProofUse/key`` of each, ascending.
    let keys: [Int64]
    /// The mark of each.
    let usedBy: [Int64]

    /// - Returns: `nil` for less than two proofs, and for proofs of several slots.
    init?(_ proofs: [ProofUse]) {
        guard proofs.count > 1, let first = proofs.first, proofs.allSatisfy({ $0.period == first.period }) else {
            return nil
        }
        let sorted = proofs.map { (key: $0.key, mark: $0.mark) }.sorted { $0.key < $1.key }
        slot = first.slot
        before = proofs.reduce(.max) { min($0, $1.before) }
        keys = sorted.map(\.key)
        usedBy = sorted.map(\.mark)
    }

    /// The period of most of the proofs; `nil` when all have one.
    static func commonestPeriod(of proofs: [ProofUse]) -> Int64? {
        guard let first = proofs.first, !proofs.allSatisfy({ $0.period == first.period }) else { return nil }
        let counted = Dictionary(grouping: proofs, by: \.period).mapValues(\.count)
        return counted.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key
    }

    /// By the names of the arguments of `postern.mark_proofs`.
    var arguments: Arguments { ["slot": slot, "before": before, "keys": keys, "used_by": usedBy] }
    /// Their names.
    static let arguments: [Argument] = ["slot", "before", "keys", "used_by"]
}

extension ProofUse {
    /// Five minutes, of which each has a slot of the store.
    var period: Int64 { milliseconds / 300_000 }
    fileprivate var slot: Int32 { Int32(truncatingIfNeeded: period % 10) }
    fileprivate var before: Int64 { milliseconds - (isByNonce ? 0 : 60_000) }
    /// The first eight bytes of the id as PostgreSQL reads them. Statements that use up several proofs do so in its
    /// order, so that two of them cannot deadlock over equal proofs.
    var key: Int64 { Int64(bitPattern: id.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) }
}

extension ProofUse {
    /// What a function takes that uses up one proof.
    static let argument = Argument.row(
        "proof", as: "proof_use",
        [
            .value("key", from: "proof_key"), .value("binds", from: "proof_binds"), .value("slot", from: "proof_slot"),
            .value("before", from: "proof_before"), .value("id", from: "proof_id"),
            .value("used_by", from: "proof_used_by"),
        ])
}

extension ProofUse {
    func arguments(in realm: UUIDValue) -> Arguments { Optional(self).arguments(in: realm) }
}

extension ProofUse? {
    /// For ``ProofUse/argument``: the key of a used proof is mixed with the realm's id, so that proofs of two realms
    /// never meet.
    func arguments(in realm: UUIDValue) -> Arguments {
        [
            "proof_key": self?.thumbprint, "proof_binds": self?.binds, "proof_slot": self?.slot,
            "proof_before": self?.before, "proof_id": self.map { $0.key ^ realm.firstHalf },
            "proof_used_by": self?.mark,
        ]
    }
}
