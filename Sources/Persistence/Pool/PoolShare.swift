/// The share a pool connection counts against: a realm's, or the server's own.
enum PoolShare: Hashable, Sendable {
    /// Configuration, mail, sweeping, readiness.
    case server
    case realm(UUIDValue)
}

extension Statement {
    /// The share of the pool that this statement with these parameters uses.
    func share(_ parameters: [Parameter]) -> PoolShare {
        if payer == .realm, case .uuid(let realm)? = parameters.first { return .realm(realm) }
        return .server
    }
}

/// How many connections each share holds, and whether it may take one more.
///
/// A realm may hold up to three times as many as then stay free, and at least one. So a single busy realm leaves a
/// quarter of the pool to the others, several busy realms hold equally many, and there is nearly always a free one for
/// a realm that holds none. The server's own work is not bounded, and one connection is kept for it.
struct Loans {
    let capacity: Int
    private(set) var total = 0
    private(set) var held: [PoolShare: Int] = [:]

    /// A realm may hold, and have waiting, this many times what stays free.
    static let greed = 3

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Connections that no realm gets.
    private var reserve: Int { capacity >= 4 ? 1 : 0 }

    mutating func add(_ change: Int, to share: PoolShare) {
        total += change
        let now = (held[share] ?? 0) + change
        held[share] = now == 0 ? nil : now
    }

    /// Whether a share may hold one connection more.
    func mayGrow(_ share: PoolShare) -> Bool {
        guard share != .server else { return true }
        let free = capacity - total - max(0, reserve - (held[.server] ?? 0))
        let holds = held[share] ?? 0
        return free > 0 && (holds == 0 || holds < Self.greed * (free - 1))
    }

    /// In which order shares are served: those that hold least first; `nil` when a share may not hold more.
    func rank(_ share: PoolShare) -> Int? { mayGrow(share) ? held[share] ?? 0 : nil }
}
