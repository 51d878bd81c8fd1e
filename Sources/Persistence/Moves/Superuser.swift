/// One session of an operator's command, without time limits, in one cluster.
struct Superuser: Sendable {
    let cluster: String
    private let session: SQLSession

    /// How long a statement that must have a lock is tried.
    private static let maximumWait = Duration.seconds(180)
    /// How long another command of the same realm is waited for.
    private static let maximumClaimWait = Duration.seconds(30)
    /// Rows removed in one transaction.
    private static let rowsAtOnce = 10_000

    init(cluster: String, conninfo: String) async throws {
        self.cluster = cluster
        do {
            session = try await SQLSession(conninfo: conninfo, applicationName: "postern realm")
        } catch {
            throw StatementFailure("cluster \(cluster): \(error.description)")
        }
    }

    /// The rows of the last statement as text, NULL as the empty string.
    @discardableResult
    func rows(_ sql: String) async throws -> [[String]] {
        do {
            return try await session.rows(sql)
        } catch {
            throw StatementFailure("cluster \(cluster): \(error.description)", sqlstate: error.sqlstate)
        }
    }

    /// The only value. - Throws: when there is none.
    func value(_ sql: String) async throws -> String {
        guard let value = try await rows(sql).first?.first else {
            throw StatementFailure("cluster \(cluster): no row")
        }
        return value
    }

    /// Ends the session.
    func end() async {
        await session.end()
    }

    /// Waits until no other command works on the realm in this cluster. The session of a command that was killed lasts
    /// as long as its last statement runs: without the lock that statement could open a realm that is open elsewhere.
    func claim(_ realm: UUIDValue, _ progress: (String) -> Void) async throws {
        let deadline = ContinuousClock.now + Self.maximumClaimWait
        var told = false
        while try await value("SELECT pg_try_advisory_lock(postern.lock_of_move('\(realm)'))") != "t" {
            guard ContinuousClock.now < deadline else {
                throw StatementFailure("cluster \(cluster): another postern realm command works on this realm")
            }
            if !told { progress("waiting for another postern realm command in \(cluster)") }
            told = true
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Removes the rows of a realm that this cluster does not serve, but for the realm's own.
    /// - Returns: how many rows.
    func clear(_ realm: UUIDValue, _ progress: (String) -> Void) async throws -> Int {
        var rows = 0
        let tables = try await self.rows("SELECT postern.guarded_tables()").map { $0[0] }.filter { $0 != "realm" }
        for table in tables + ["realm_move_mark"] {
            var cleared = 0
            repeat {
                let count = try await value("SELECT postern.clear_rows('\(realm)', '\(table)', \(Self.rowsAtOnce))")
                cleared = Int(count) ?? 0
                rows += cleared
            } while cleared >= Self.rowsAtOnce
            progress("\(table) is clear")
        }
        return rows
    }

    /// Removes the triggers of a move from the tables that a function names.
    func unguard(_ realm: UUIDValue, _ tables: String) async throws {
        for table in try await rows("SELECT postern.\(tables)()") {
            try await patiently("SELECT postern.unguard_table('\(realm)', '\(table[0])')")
        }
    }

    /// Runs it again while another transaction holds what it needs.
    func patiently(_ sql: String) async throws {
        let deadline = ContinuousClock.now + Self.maximumWait
        while true {
            do {
                try await rows(sql)
                return
            } catch let error as StatementFailure
                where ["55P03", "40P01"].contains(error.sqlstate) && ContinuousClock.now < deadline
            {
                // What queued behind the lock has to run before it is asked for again.
                try await Task.sleep(for: .milliseconds(Int64.random(in: 100...400)))
            }
        }
    }
}

/// A text as an SQL literal. By bytes: a page of used proofs has megabytes, and the pause waits for it.
func literal(_ text: String) -> String {
    let quote = UInt8(ascii: "'")
    let backslash = UInt8(ascii: "\\")
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count + 16)
    var isEscaped = false
    for byte in text.utf8 {
        if byte == quote || byte == backslash { bytes.append(byte) }
        isEscaped = isEscaped || byte == backslash
        bytes.append(byte)
    }
    return (isEscaped ? " E'" : "'") + String(decoding: bytes, as: UTF8.self) + "'"
}

extension Superuser {
    /// A slot may still be used by a connection that ends just now.
    func patientlyDropSlot(_ slot: String) async throws {
        for _ in 0..<100 {
            do {
                try await rows("SELECT pg_drop_replication_slot('\(slot)')")
                return
            } catch let error as StatementFailure where error.sqlstate == "55006" {
                try await Task.sleep(for: .milliseconds(50))
            } catch let error as StatementFailure where error.sqlstate == "42704" {
                return
            }
        }
        throw StatementFailure("cluster \(cluster): the slot \(slot) is in use")
    }
}
