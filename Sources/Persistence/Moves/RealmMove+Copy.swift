extension RealmMove {
    /// A change that arrives later than this makes the pause too long.
    private static let longestArrival = Duration.milliseconds(500)
    /// How long such changes are waited for.
    private static let maximumWait = Duration.seconds(600)
    /// Used proofs in one statement.
    private static let proofsAtOnce = 20_000

    /// Copies the rows, and everything that changes from then on.
    func copy(_ sessions: Sessions) async throws {
        let (old, new) = sessions
        try await old.rows("SELECT postern.begin_leaving(\(id), \(literal(to.name)))")
        if try await isCopying(sessions) {
            progress("going on with the copy of an earlier run")
        } else {
            try await endCopy(sessions)
            try await removeCopy(new)
            progress("guarding the tables in \(from.name)")
            for table in try await old.rows("SELECT postern.guarded_tables()") {
                try await old.patiently("SELECT postern.guard_table(\(id), '\(table[0])')")
            }
            try await old.rows("SELECT postern.publish_realm(\(id))")
            try await expect(new, after: try await old.value("SELECT postern.last_event()"))
            try await new.rows(
                "CREATE SUBSCRIPTION \(name) CONNECTION \(literal(publisher)) PUBLICATION \(name) "
                    + "WITH (slot_name = '\(name)')")
        }
        progress("copying \(realm.users) users and \(realm.sessions) sessions")
        try await awaitTables(sessions)
        progress("all tables are copied and follow")
        // Without figures on the new rows the first statements there would read whole tables.
        for table in try await new.rows("SELECT postern.tables_of_realms()") {
            try await new.rows("ANALYZE postern.\(table[0])")
        }
    }

    /// Of several hosts the one that takes writes: a standby of PostgreSQL 15 publishes nothing.
    private var publisher: String {
        let wanted = "target_session_attrs=read-write"
        if replication.contains("target_session_attrs") { return replication }
        guard replication.contains("://") else { return "\(replication) \(wanted)" }
        return replication + (replication.contains("?") ? "&" : "?") + wanted
    }

    private func awaitTables(_ sessions: Sessions) async throws {
        var told = (waiting: -1, errors: 0)
        while true {
            let figures = try await sessions.new.rows(
                """
                SELECT count(*) FILTER (WHERE r.srsubstate <> 'r'), count(*),
                       (SELECT e.sync_error_count + e.apply_error_count FROM pg_stat_subscription_stats AS e
                         WHERE e.subname = '\(name)')
                  FROM pg_subscription_rel AS r JOIN pg_subscription AS s ON s.oid = r.srsubid
                 WHERE s.subname = '\(name)'
                """)
            guard let counts = figures.first?.map({ Int($0) ?? 0 }), counts.count == 3, counts[1] > 0 else {
                throw StatementFailure("cluster \(to.name): the subscription \(name) is gone")
            }
            if counts[0] == 0 { return }
            if counts[0] != told.waiting { progress("\(counts[1] - counts[0]) of \(counts[1]) tables copied") }
            if counts[2] > told.errors {
                progress("\(to.name) copies with errors (\(counts[2])): the log of its PostgreSQL says which")
            }
            told = (counts[0], max(told.errors, counts[2]))
            try await requireSlot(sessions.old)
            try await Task.sleep(for: .milliseconds(250))
        }
    }

    /// PostgreSQL makes no slot anew: without one the copy stands still for ever.
    private func requireSlot(_ old: Superuser) async throws {
        guard
            try await old.value(
                "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '\(name)' AND wal_status <> 'lost'") == "1"
        else { throw StatementFailure("cluster \(from.name) has lost the replication slot, as after a failover") }
    }

    /// Waits until a change arrives soon, so that the pause is short.
    func follow(_ sessions: Sessions) async throws {
        let began = ContinuousClock.now
        var tries = 0
        while true {
            tries += 1
            let written = ContinuousClock.now
            let mark = try await sessions.old.value("SELECT postern.mark_move(\(id))")
            while try await !hasArrived(mark, sessions.new) {
                guard ContinuousClock.now < began + Self.maximumWait else {
                    throw StatementFailure("the last changes do not arrive in \(to.name)")
                }
                try await requireSlot(sessions.old)
                try await Task.sleep(for: .milliseconds(5))
            }
            let took = ContinuousClock.now - written
            if took < min(.milliseconds(50 * tries), Self.longestArrival) { return }
            guard ContinuousClock.now < began + Self.maximumWait else {
                throw StatementFailure(
                    "changes take \(took.milliseconds) ms to arrive in \(to.name): too long for a pause")
            }
            if tries == 1 { progress("the last changes took \(took.milliseconds) ms to arrive: waiting for less") }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    /// Whether a row that was written last has arrived, and with it all before.
    func hasArrived(_ mark: String, _ new: Superuser) async throws -> Bool {
        try await new.value(
            "SELECT count(*) FROM postern.realm_move_mark WHERE realm_id = \(id) AND id = '\(mark)'") == "1"
    }

    /// Copies the used proofs, which logical replication leaves out and the pause is too short for.
    /// - Returns: the transaction since which proofs may be missing.
    func copyProofs(_ sessions: Sessions) async throws -> String {
        let since = try await sessions.old.value("SELECT pg_snapshot_xmin(pg_current_snapshot())::xid")
        for slot in 0..<10 {
            var last = "\\x"
            while true {
                let page = try await sessions.old.rows(
                    "SELECT p.proofs, p.last FROM postern.proofs_to_copy("
                        + "\(id), \(slot), \(literal(last)), \(Self.proofsAtOnce)) AS p")
                guard let row = page.first, row.count == 2, !row[1].isEmpty else { break }
                try await sessions.new.rows("SELECT postern.put_proofs(\(literal(row[0])))")
                last = row[1]
            }
        }
        return since
    }

    /// Prepares the other cluster.
    private func expect(_ new: Superuser, after lastEvent: String) async throws {
        let hosts = realm.hosts.map { literal($0) }.joined(separator: ", ")
        try await new.patiently(
            """
            SELECT postern.begin_arriving(
                \(id), \(literal(realm.slug)), ARRAY[\(hosts)]::text[], \(literal(from.name)), \(lastEvent))
            """)
    }

    /// Removes what an earlier try has left in the other cluster.
    func removeCopy(_ new: Superuser) async throws {
        let arriving = "SELECT count(*) FROM postern.realm_move WHERE realm_id = \(id) AND state = 'arriving'"
        guard try await new.value(arriving) == "1" else { return }
        _ = try await new.clear(realm.id) { _ in }
        try await new.unguard(realm.id, "tables_with_transactions")
    }

    /// Whether an earlier run's copy lives: its subscription and the slot that feeds it.
    private func isCopying(_ sessions: Sessions) async throws -> Bool {
        let slot = try await sessions.old.value(
            "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '\(name)' AND wal_status <> 'lost'")
        let subscription = try await sessions.new.value(
            "SELECT count(*) FROM pg_subscription WHERE subname = '\(name)'")
        let move = try await sessions.new.value("SELECT count(*) FROM postern.realm_move WHERE realm_id = \(id)")
        return slot == "1" && subscription == "1" && move == "1"
    }

    /// Ends the copying: subscription, slot and publication.
    func endCopy(_ sessions: Sessions) async throws {
        let (old, new) = sessions
        var synchronising: [String] = []
        if try await new.value("SELECT count(*) FROM pg_subscription WHERE subname = '\(name)'") == "1" {
            synchronising = try await new.rows(
                """
                SELECT format('pg_%s_sync_%s_%s', s.oid, r.srrelid, (pg_control_system()).system_identifier)
                  FROM pg_subscription AS s JOIN pg_subscription_rel AS r ON r.srsubid = s.oid
                 WHERE s.subname = '\(name)' AND r.srsubstate <> 'r'
                """
            ).map { $0[0] }
            // Without its slot, so that it goes also when the slot is gone, as after a failover.
            try await new.rows("ALTER SUBSCRIPTION \(name) DISABLE")
            try await new.rows("ALTER SUBSCRIPTION \(name) SET (slot_name = NONE)")
            try await new.rows("DROP SUBSCRIPTION \(name)")
        }
        // PostgreSQL makes slots of its own while it copies tables.
        for slot in try await old.rows(
            "SELECT slot_name FROM pg_replication_slots WHERE slot_name = '\(name)' OR slot_name = ANY ("
                + "ARRAY[\(synchronising.map { "'\($0)'" }.joined(separator: ", "))]::text[])")
        {
            try await old.patientlyDropSlot(slot[0])
        }
        try await old.rows("DROP PUBLICATION IF EXISTS \(name)")
    }
}
