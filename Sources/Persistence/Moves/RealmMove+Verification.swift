extension RealmMove {
    /// Ends the copying and compares what both clusters had when the realm changed over.
    /// - Parameter snapshots: sessions that see that moment; `nil` when the run that opened them is gone.
    /// - Returns: how many rows were compared.
    func finish(
        _ old: Superuser, _ new: Superuser, verifying snapshots: (old: Superuser, new: Superuser)?
    ) async throws -> Int {
        try await abandonCopy(old, new)
        for table in ["audit_event", "webhook_delivery"] {
            try await new.patiently("SELECT postern.unguard_table(\(id), '\(table)')")
        }
        guard let snapshots else {
            progress(
                "the rows were not compared: the run that changed the cluster ended before. "
                    + "postern realm clear --unverified removes the old ones all the same")
            return 0
        }
        progress("comparing the rows of both clusters")
        var rows = 0
        for table in try await old.rows("SELECT postern.tables_of_realms()").map({ $0[0] }) {
            let sum = "SELECT * FROM postern.realm_checksum(\(id), '\(table)')"
            async let before = snapshots.old.rows(sum)
            async let after = snapshots.new.rows(sum)
            let (left, arrived) = try await (before, after)
            guard left == arrived, let count = left.first?.first.flatMap({ Int($0) }) else {
                throw StatementFailure(
                    "table \(table) differs: \(left) in \(from.name), \(arrived) in \(to.name). "
                        + "\(realm.slug) is served by \(to.name); the rows in \(from.name) are kept as they were")
            }
            rows += count
        }
        try await snapshots.old.rows("COMMIT")
        try await snapshots.new.rows("COMMIT")
        try await old.rows("SELECT postern.note_verified(\(id))")
        return rows
    }

    /// Ends a move whose realm has not changed over: the realm stays where it is.
    public func abandon() async throws {
        let old = try await Superuser(cluster: from.name, conninfo: from.conninfo)
        let new = try await Superuser(cluster: to.name, conninfo: to.conninfo)
        guard try await new.value("SELECT postern.placement(\(id))") != "here" else {
            throw StatementFailure("\(realm.slug) is served by \(to.name) already: move it back instead")
        }
        try await old.rows("SELECT postern.reopen_realm(\(id))")
        progress("removing what was copied to \(to.name)")
        try await abandonCopy(old, new)
        try await expect(new, after: "0")
        for table in ["audit_event", "webhook_delivery"] {
            try await new.patiently("SELECT postern.unguard_table(\(id), '\(table)')")
        }
        try await new.rows("SELECT postern.end_move(\(id))")
        for table in try await old.rows("SELECT postern.guarded_tables()") {
            try await old.patiently("SELECT postern.unguard_table(\(id), '\(table[0])')")
        }
        try await old.rows("SELECT postern.end_move(\(id))")
    }

    /// Removes the rows of a realm from a cluster that it has left.
    /// - Parameter unverified: also rows that no move has compared with those of the other cluster.
    /// - Returns: how many rows.
    public static func clear(
        _ realm: PlacementStore.Listed, at place: Place, unverified: Bool, progress: @Sendable (String) -> Void
    ) async throws -> Int {
        let session = try await Superuser(cluster: place.name, conninfo: place.conninfo)
        if unverified { try await session.rows("SELECT postern.note_verified('\(realm.id)')") }
        var rows = 0
        let tables = try await session.rows("SELECT postern.guarded_tables()").map { $0[0] }
        for table in tables.filter({ $0 != "realm" }) + ["realm_move_mark", "realm"] {
            var cleared = 0
            repeat {
                let count = try await session.value("SELECT postern.clear_rows('\(realm.id)', '\(table)', 10000)")
                cleared = Int(count) ?? 0
                rows += cleared
            } while cleared == 10_000
            progress("\(table) is clear")
        }
        for table in tables { try await session.patiently("SELECT postern.unguard_table('\(realm.id)', '\(table)')") }
        try await session.rows("SELECT postern.end_move('\(realm.id)')")
        return rows
    }
}
