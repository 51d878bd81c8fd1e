/// Reads the audit log of a realm for export.
public struct AuditStore: Sendable {
    private let database: Database

    /// A part of the audit log.
    public struct Page: Sendable {
        /// Events as JSON, one a line; `nil` when none of the rows that were read is wanted.
        public let lines: String?
        /// Behind the last row that was read.
        public let place: String
        /// Whether there is no further row now.
        public let isEnd: Bool
    }

    /// Before every event.
    public static let beginning = "0:0"

    /// Reads through `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// The place of an event in the order of ``page(realm:after:since:rows:)``; `nil` when there is no such event.
    public func place(realm: UUIDValue, id: Int64) async throws(StoreError) -> String? {
        try await database.one(Self.calls.place, ["realm": realm, "id": id])
    }

    /// The events behind a place, `rows` at most, without those before a time in seconds. An event is seen only when
    /// no earlier one in this order can still appear.
    public func page(
        realm: UUIDValue, after place: String, since: Double, rows: Int32
    ) async throws(StoreError) -> Page {
        try await database.one(
            Self.calls.page, ["realm": realm, "place": place, "since": since, "batch": rows])
    }

    struct Calls: Sendable {
        let place = FunctionCall<String?>("audit_place", ["realm", "id"], effect: .readOnly)
        let page = FunctionCall<Page>(
            "export_audit", ["realm", "place", "since", "batch"], effect: .readOnly
        ) { (row) throws(StoreError) in
            Page(lines: try row("lines"), place: try row("place"), isEnd: try row("is_end"))
        }
    }
    static let calls = Calls()
}
