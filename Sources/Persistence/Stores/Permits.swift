/// Permits a statement must obtain before it does its work: parallel arrays for `postern.take_permits`.
public struct PermitRequest: Sendable, Equatable {
    var keys: [String] = []
    var wanted: [Int32] = []
    var permits: [Int32] = []
    /// Seconds.
    var per: [Double] = []
    var burst: [Int32] = []

    /// Asks for nothing.
    public init() {}

    /// Adds one budget. Numbers outside what PostgreSQL's `integer` holds are clamped.
    /// - Parameter wanted: negative for a budget that is counted and refuses nothing.
    public mutating func append(key: String, wanted: Int, permits: Int, per: Double, burst: Int) {
        keys.append(key)
        self.wanted.append(Int32(clamping: wanted))
        self.permits.append(Int32(clamping: permits))
        self.per.append(per)
        self.burst.append(Int32(clamping: burst))
    }

    /// Whether there is nothing to ask for.
    public var isEmpty: Bool { keys.isEmpty }

    /// What every limited function takes.
    static let argument = Argument.row("permits", ["keys", "wanted", "permits", "per", "burst"])

    var arguments: Arguments {
        ["keys": keys, "wanted": wanted, "permits": permits, "per": per, "burst": burst]
    }
}

/// What the database said about a ``PermitRequest``.
public struct PermitVerdict: Sendable, Equatable {
    /// Permits granted, in the order asked for; shorter when an earlier one was refused.
    public let granted: [Int32]
    /// Index of the refused one, `nil` when all were granted.
    public let refused: Int?
    /// Seconds until a permit is free again.
    public let retryAfter: Double

    /// A verdict.
    public init(granted: [Int32], refused: Int?, retryAfter: Double) {
        self.granted = granted
        self.refused = refused
        self.retryAfter = retryAfter
    }
}

extension PermitVerdict {
    /// What every limited function returns.
    static func columns(_ columns: inout Columns) -> RowDecoder<Self> {
        columns.record { (row) throws(StoreError) in
            let (granted, refused, retryAfter): ([Int32]?, Int?, Double?) = try (
                row("granted"), row("limit_ord"), row("retry_after")
            )
            return PermitVerdict(granted: granted ?? [], refused: refused.map { $0 - 1 }, retryAfter: retryAfter ?? 0)
        }
    }
}

extension Columns {
    /// What a limited function returns: the verdict about the permits, and an outcome unless one of them was refused.
    mutating func limited<Outcome>(_ outcome: @escaping RowDecoder<Outcome>) -> RowDecoder<(Outcome?, PermitVerdict)> {
        let verdict = PermitVerdict.columns(&self)
        return { (row) throws(StoreError) in
            let verdict = try verdict(row)
            return (verdict.refused == nil ? try outcome(row) : nil, verdict)
        }
    }
}

/// Takes permits and nothing else, for requests that need no other statement.
public struct PermitStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// Takes what is asked for, in order, up to the first refusal.
    public func take(realm: UUIDValue, _ permits: PermitRequest) async throws(StoreError) -> PermitVerdict {
        try await database.one(Self.calls.take, ["realm": realm] + permits.arguments)
    }

    /// Takes permits, then uses up a proof.
    public func take(
        realm: UUIDValue, _ permits: PermitRequest, spending proof: ProofUse
    ) async throws(StoreError) -> PermitVerdict {
        try await database.one(
            Self.calls.spend, ["realm": realm] + proof.arguments(in: realm) + permits.arguments)
    }

    struct Calls: Sendable {
        let spend = FunctionCall(
            "spend_proof", ["realm", ProofUse.argument, PermitRequest.argument], effect: .idempotent,
            returns: PermitVerdict.columns)
        let take = FunctionCall(
            "take_realm_permits", ["realm", PermitRequest.argument], effect: .once, returns: PermitVerdict.columns)
    }
    static let calls = Calls()
}
