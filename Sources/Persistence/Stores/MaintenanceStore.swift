/// The state of the schema, and the removal of what has expired.
public struct MaintenanceStore: Sendable {
    private let database: Database

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The version of the schema that the database has.
    public func schemaVersion() async throws(StoreError) -> Int32 {
        try await database.one(Self.calls.schemaVersion)
    }

    /// Deletes up to `batch` expired rows; none while another server does so.
    /// - Returns: how many were deleted.
    public func sweep(batch: Int32) async throws(StoreError) -> Int {
        try await database.one(Self.calls.sweep, ["batch": batch])
    }

    struct Calls: Sendable {
        let schemaVersion = FunctionCall<Int32>("schema_version", effect: .readOnly)
        let sweep = FunctionCall<Int>("sweep", ["batch"], effect: .idempotent)
    }
    static let calls = Calls()
}
