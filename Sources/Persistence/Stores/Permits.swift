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

    var parameters: [Parameter] {
        [.texts(keys), .ints(wanted), .ints(permits), .doubles(per), .ints(burst)]
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

/// Takes permits and nothing else, for requests that need no other statement.
public struct PermitStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Takes what is asked for, in order, up to the first refusal.
    public func take(realm: UUIDValue, _ permits: PermitRequest) async throws(StoreError) -> PermitVerdict {
        let rows = try await database.query(Self.take, [.uuid(realm)] + permits.parameters) {
            (row) throws(StoreError) in
            try row.permitVerdict(granted: 2, refused: 0, retryAfter: 1)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    private static let take = Statement(
        name: "take_realm_permits",
        sql: "SELECT limit_ord, retry_after, granted FROM postern.take_realm_permits($1, $2, $3, $4, $5, $6)",
        effect: .once)
}
