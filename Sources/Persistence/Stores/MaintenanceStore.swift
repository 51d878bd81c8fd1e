/// The state of the schema, and the removal of what has expired.
public struct MaintenanceStore: Sendable {
    private let database: Database

    public init(_ database: Database) {
        self.database = database
    }

    /// The set of functions that the database has, and the oldest binary that works on its schema.
    public func schemaRange() async throws(StoreError) -> (functionSet: Int32, oldestBinary: Int32) {
        try await database.one(Self.calls.schemaRange)
    }

    /// Deletes up to `batch` expired rows; none while another server does so.
    /// - Returns: how many were deleted.
    public func sweep(batch: Int32) async throws(StoreError) -> Int {
        try await database.one(Self.calls.sweep, ["batch": batch])
    }

    struct Calls: Sendable {
        let schemaRange = FunctionCall<(functionSet: Int32, oldestBinary: Int32)>(
            "schema_range", effect: .readOnly, payer: .server
        ) { (row) throws(StoreError) in (try row("function_set"), try row("oldest_binary")) }
        let sweep = FunctionCall<Int>("sweep", ["batch"], effect: .idempotent)
    }
    static let calls = Calls()
}
