/// Counts what depends on each line of the key file.
public struct KeyLineStore: Sendable {
    private let database: Database

    /// 80 MB of sessions per statement.
    private static let pages: Int32 = 10_000

    /// Works on `database`.
    public init(_ database: Database) {
        self.database = database
    }

    /// Over all realms. Reads every session, a part of the table at a time.
    public func use() async throws(StoreError) -> KeyLineUse {
        var use = KeyLineUse()
        for (line, kind, count) in try await database.query(
            Self.secrets, [],
            { (row) throws(StoreError) in (try row.bytesOrNil(0), try row.text(1), Int(try row.bigint(2))) })
        {
            // A kind of a newer schema is not this binary's to judge.
            if let kind = KeyLineUse.Kind(rawValue: kind) { use.add(count, kind, to: line) }
        }
        var page: Int64? = 0
        while let from = page {
            page = nil
            for (line, count, next) in try await database.query(
                Self.sessions, [.bigint(from), .int(Self.pages)],
                { (row) throws(StoreError) in (try row.bytesOrNil(0), Int(try row.bigint(1)), try row.bigintOrNil(2)) })
            {
                use.add(count, .session, to: line)
                page = next
            }
        }
        return use
    }

    private static let secrets = Statement(
        name: "key_line_secrets", sql: "SELECT line, kind, count FROM postern.key_line_secrets()", effect: .readOnly)
    private static let sessions = Statement(
        name: "key_line_sessions", sql: "SELECT line, count, next_page FROM postern.key_line_sessions($1, $2)",
        effect: .readOnly)
}
