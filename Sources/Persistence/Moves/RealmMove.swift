/// Moves a realm from one PostgreSQL cluster to another while it is served (docs/decisions/0047).
///
/// PostgreSQL's logical replication copies the rows and what changes meanwhile. Then the first cluster refuses every
/// write to the realm, the last changes arrive, and the second cluster opens the realm: between the two, writes wait.
/// Every step looks at what both clusters say, so that a move that was interrupted goes on when it is run again.
public struct RealmMove: Sendable {
    /// How to reach a cluster as a superuser.
    public struct Place: Sendable {
        let name: String
        let conninfo: String

        /// A cluster and the connection string of a superuser.
        public init(name: String, conninfo: String) {
            self.name = name
            self.conninfo = conninfo
        }
    }

    /// What a move did.
    public struct Outcome: Sendable {
        /// From the first refused write to the opening; `nil` when an earlier run had opened the realm.
        public let pause: Duration?
        /// Rows compared.
        public let rows: Int
    }

    let realm: PlacementStore.Listed
    let from: Place
    let to: Place
    /// What the other cluster's PostgreSQL connects to the first with.
    let replication: String
    let progress: @Sendable (String) -> Void

    /// - Parameters:
    ///   - realm: as the cluster that it leaves lists it.
    ///   - replication: what the PostgreSQL of `to` connects to that of `from` with.
    ///   - progress: told what begins.
    public init(
        _ realm: PlacementStore.Listed, from: Place, to: Place, replication: String,
        progress: @escaping @Sendable (String) -> Void
    ) {
        self.realm = realm
        self.from = from
        self.to = to
        self.replication = replication
        self.progress = progress
    }

    /// How long writes under way may take to end before the realm is opened again and closed another time.
    private static let patience = "700ms"
    /// How long the last changes may take to arrive.
    private static let arrival = Duration.seconds(3)

    var id: String { "'\(realm.id)'" }
    var name: String { "postern_move_" + "\(realm.id)".replacing("-", with: "") }

    /// Does what is not done yet.
    /// - Throws: ``StatementFailure``; run it again when its cause is gone. The realm is served all the time.
    public func run() async throws -> Outcome {
        let old = try await Superuser(cluster: from.name, conninfo: from.conninfo)
        let new = try await Superuser(cluster: to.name, conninfo: to.conninfo)
        try await requireAbilities(old, new)
        let isOpen = try await new.value("SELECT postern.placement(\(id))") == "here"
        let snapshots: (old: Superuser, new: Superuser)
        var pause: Duration?
        if isOpen {
            progress("\(realm.slug) is served by \(to.name) already")
            return Outcome(pause: nil, rows: try await finish(old, new, verifying: nil))
        }
        if try await old.value("SELECT postern.placement(\(id))") == "left" {
            // A run ended between the two clusters. No other cluster serves the realm.
            progress("opening \(realm.slug) in \(from.name) again, where an earlier run had closed it")
            try await old.rows("SELECT postern.reopen_realm(\(id))")
        }
        try await copy(old, new)
        (snapshots, pause) = try await change(old, new)
        return Outcome(pause: pause, rows: try await finish(old, new, verifying: snapshots))
    }

    private func requireAbilities(_ old: Superuser, _ new: Superuser) async throws {
        for session in [old, new] {
            guard try await session.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == "t" else {
                throw StatementFailure(
                    "cluster \(session.cluster): a move needs a superuser: only superusers may subscribe")
            }
        }
        guard try await old.value("SHOW wal_level") == "logical" else {
            throw StatementFailure("cluster \(from.name): set wal_level = logical and restart it: a realm leaves by it")
        }
        let identity = "SELECT system_identifier FROM pg_control_system()"
        guard try await old.value(identity) != new.value(identity) else {
            throw StatementFailure("\(from.name) and \(to.name) are databases of the same cluster")
        }
        let version = "SELECT postern.schema_version()"
        guard try await old.value(version) == new.value(version) else {
            throw StatementFailure("\(from.name) and \(to.name) have different schemas: run postern migrate")
        }
    }

    /// Copies the rows, and everything that changes from then on.
    private func copy(_ old: Superuser, _ new: Superuser) async throws {
        try await old.rows("SELECT postern.begin_leaving(\(id), \(literal(to.name)))")
        if try await isCopying(old, new) {
            progress("going on with the copy of an earlier run")
        } else {
            try await abandonCopy(old, new)
            progress("guarding the tables in \(from.name)")
            for table in try await old.rows("SELECT postern.guarded_tables()") {
                try await old.patiently("SELECT postern.guard_table(\(id), '\(table[0])')")
            }
            try await old.rows("SELECT postern.publish_realm(\(id))")
            try await expect(new, after: try await old.value("SELECT postern.last_event()"))
            try await new.rows(
                "CREATE SUBSCRIPTION \(name) CONNECTION \(literal(replication)) PUBLICATION \(name) "
                    + "WITH (slot_name = '\(name)')")
        }
        progress("copying \(realm.users) users and \(realm.sessions) sessions")
        var told = -1
        while true {
            let states = try await new.rows(
                """
                SELECT count(*) FILTER (WHERE r.srsubstate <> 'r'), count(*) FROM pg_subscription_rel AS r
                  JOIN pg_subscription AS s ON s.oid = r.srsubid WHERE s.subname = '\(name)'
                """)
            guard let counts = states.first?.compactMap({ Int($0) }), counts.count == 2, counts[1] > 0 else {
                throw StatementFailure("cluster \(to.name): the subscription \(name) is gone; run the move again")
            }
            if counts[0] == 0 { break }
            if counts[0] != told { progress("\(counts[1] - counts[0]) of \(counts[1]) tables copied") }
            told = counts[0]
            try await Task.sleep(for: .milliseconds(250))
        }
        progress("all tables are copied and follow")
        // Without figures on the new rows the first statements there would read whole tables.
        for table in try await new.rows("SELECT postern.tables_of_realms()") {
            try await new.rows("ANALYZE postern.\(table[0])")
        }
    }

    /// Prepares the other cluster, and removes what an earlier try has left there.
    func expect(_ new: Superuser, after lastEvent: String) async throws {
        let hosts = realm.hosts.map { literal($0) }.joined(separator: ", ")
        try await new.patiently(
            """
            SELECT postern.begin_arriving(
                \(id), \(literal(realm.slug)), ARRAY[\(hosts)]::text[], \(literal(from.name)), \(lastEvent))
            """)
    }

    /// Whether an earlier run's copy lives: its subscription and the slot that feeds it.
    private func isCopying(_ old: Superuser, _ new: Superuser) async throws -> Bool {
        let slot = try await old.value("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '\(name)'")
        let subscription = try await new.value("SELECT count(*) FROM pg_subscription WHERE subname = '\(name)'")
        let move = try await new.value("SELECT count(*) FROM postern.realm_move WHERE realm_id = \(id)")
        return slot == "1" && subscription == "1" && move == "1"
    }

    /// Ends the copying: subscription, slot and publication.
    func abandonCopy(_ old: Superuser, _ new: Superuser) async throws {
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

    /// The pause: closes the realm in one cluster and opens it in the other.
    /// - Returns: sessions that see both clusters as they were between, and how long it took.
    private func change(
        _ old: Superuser, _ new: Superuser
    ) async throws -> ((old: Superuser, new: Superuser), Duration) {
        let oldView = try await Superuser(cluster: from.name, conninfo: from.conninfo)
        let newView = try await Superuser(cluster: to.name, conninfo: to.conninfo)
        progress("changing over")
        var attempt = 0
        while true {
            attempt += 1
            let began = ContinuousClock.now
            try await old.rows("SELECT postern.close_realm(\(id))")
            do {
                let written = try await old.rows(
                    "SELECT w ->> 'mark', w FROM postern.end_writes(\(id), '\(Self.patience)') AS w")
                guard let mark = written.first?[0], let last = written.first?[1] else {
                    throw StatementFailure("cluster \(from.name): no answer to end_writes")
                }
                try await awaitMark(mark, new)
                for view in [oldView, newView] {
                    try await view.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT postern.placement(\(id))")
                }
                try await new.rows("SELECT postern.open_realm(\(id), \(literal(last)))")
                let pause = ContinuousClock.now - began
                progress("\(realm.slug) is served by \(to.name); writes waited \(pause.milliseconds) ms")
                return ((oldView, newView), pause)
            } catch {
                for view in [oldView, newView] { _ = try? await view.rows("ROLLBACK") }
                // An opening whose answer was lost may have happened.
                let check = try await Superuser(cluster: to.name, conninfo: to.conninfo)
                guard try await check.value("SELECT postern.placement(\(id))") != "here" else { throw error }
                try await old.rows("SELECT postern.reopen_realm(\(id))")
                guard attempt < 10, (error as? StatementFailure)?.sqlstate == "55P03" else { throw error }
                progress("a writer did not end: the realm is open again; trying another time")
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Waits until the last row that was written has arrived, and with it all before.
    private func awaitMark(_ mark: String, _ new: Superuser) async throws {
        let deadline = ContinuousClock.now + Self.arrival
        while try await new.value(
            "SELECT count(*) FROM postern.realm_move_mark WHERE realm_id = \(id) AND id = '\(mark)'") == "0"
        {
            guard ContinuousClock.now < deadline else {
                throw StatementFailure("the last changes did not arrive in \(to.name) in time", sqlstate: "55P03")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
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
