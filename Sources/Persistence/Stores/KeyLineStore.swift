/// Counts what depends on each line of the key file.
public struct KeyLineStore: Sendable {
    private let database: Database

    /// 80 MB of sessions per statement.
    private static let pages: Int32 = 10_000

    public init(_ database: Database) {
        self.database = database
    }

    /// Over all realms. Reads every session, a part of the table at a time.
    public func use() async throws(StoreError) -> KeyLineUse {
        var use = KeyLineUse()
        for (line, kind, count) in try await database.all(Self.calls.secrets) {
            // A kind of a newer schema is not this binary's to judge.
            if let kind = KeyLineUse.Kind(rawValue: kind) { use.add(count, kind, to: line) }
        }
        var page: Int64? = 0
        while let from = page {
            page = nil
            for (line, count, next) in try await database.all(
                Self.calls.sessions, ["page": from, "pages": Self.pages])
            {
                if let line { use.add(count, .session, to: line) }
                page = next
            }
        }
        return use
    }

    struct Calls: Sendable {
        let secrets = FunctionCall<(line: [UInt8], kind: String, count: Int)>(
            "key_line_secrets", effect: .readOnly
        ) { (row) throws(StoreError) in (try row("line"), try row("kind"), try row("count"))
        }
        let sessions = FunctionCall<(line: [UInt8]?, count: Int, next: Int64?)>(
            "key_line_sessions", ["page", "pages"], effect: .readOnly
        ) { (row) throws(StoreError) in (try row("line"), try row("count"), try row("next_page"))
        }
    }
    static let calls = Calls()
}
