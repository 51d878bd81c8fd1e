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

    /// A session in each cluster.
    typealias Sessions = (old: Superuser, new: Superuser)

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

    var id: String { "'\(realm.id)'" }
    var name: String { "postern_move_" + "\(realm.id)".replacing("-", with: "") }

    /// Does what is not done yet.
    /// - Throws: ``StatementFailure`` that says which cluster serves the realm and what to do.
    public func run() async throws -> Outcome {
        do {
            return try await steps()
        } catch let failure as StatementFailure {
            throw StatementFailure("\(failure.description)\n\(await advice())", sqlstate: failure.sqlstate)
        }
    }

    private func steps() async throws -> Outcome {
        var sessions = try await open()
        try await requireAbilities(sessions)
        if try await serves(sessions.new) {
            progress("\(realm.slug) is served by \(to.name) already")
            return Outcome(pause: nil, rows: try await finish(sessions, verifying: nil))
        }
        if try await sessions.old.value("SELECT postern.placement(\(id))") == "left" {
            // A run ended between the two clusters. No other cluster serves the realm.
            progress("opening \(realm.slug) in \(from.name) again, where an earlier run had closed it")
            try await sessions.old.rows("SELECT postern.reopen_realm(\(id))")
        }
        try await copy(sessions)
        let change = try await change(&sessions)
        return Outcome(pause: change?.pause, rows: try await finish(sessions, verifying: change?.views))
    }

    /// Connects to both clusters as the only command that works on the realm there.
    func open() async throws -> Sessions {
        let old = try await Superuser(cluster: from.name, conninfo: from.conninfo)
        let new = try await Superuser(cluster: to.name, conninfo: to.conninfo)
        for session in [old, new] { try await session.claim(realm.id, progress) }
        return (old, new)
    }

    /// Whether a cluster serves the realm.
    func serves(_ session: Superuser) async throws -> Bool {
        try await session.value("SELECT postern.placement(\(id))") == "here"
    }

    /// What an operator does after a failure.
    private func advice() async -> String {
        let again = "postern realm move \(realm.slug) --to \(to.name)"
        guard let old = try? await Superuser(cluster: from.name, conninfo: from.conninfo),
            let new = try? await Superuser(cluster: to.name, conninfo: to.conninfo),
            let isThere = try? await serves(new), let isHere = try? await serves(old)
        else {
            return
                "Run \(again) again as soon as both clusters answer; postern realm list shows where \(realm.slug) is."
        }
        if isThere { return "\(realm.slug) is served by \(to.name). Run \(again) again: it ends the move." }
        if isHere {
            return "\(realm.slug) is served by \(from.name) as before. Run \(again) again: it goes on or copies anew; "
                + "--abandon ends the move."
        }
        return "Writes to \(realm.slug) wait: neither cluster serves it. Run \(again) again at once."
    }

    private func requireAbilities(_ sessions: Sessions) async throws {
        let (old, new) = sessions
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

    /// Ends a move whose realm has not changed over: the realm stays where it is.
    public func abandon() async throws {
        let sessions = try await open()
        guard try await !serves(sessions.new) else {
            throw StatementFailure("\(realm.slug) is served by \(to.name) already: move it back instead")
        }
        try await sessions.old.rows("SELECT postern.reopen_realm(\(id))")
        progress("removing what was copied to \(to.name)")
        try await endCopy(sessions)
        try await removeCopy(sessions.new)
        try await sessions.new.rows("SELECT postern.end_move(\(id))")
        try await sessions.old.unguard(realm.id, "guarded_tables")
        try await sessions.old.rows("SELECT postern.end_move(\(id))")
    }

    /// Removes the rows of a realm from a cluster that it has left.
    /// - Parameter unverified: also rows that no move has compared with those of the other cluster.
    /// - Returns: how many rows.
    public static func clear(
        _ realm: PlacementStore.Listed, at place: Place, unverified: Bool,
        progress: @escaping @Sendable (String) -> Void
    ) async throws -> Int {
        let session = try await Superuser(cluster: place.name, conninfo: place.conninfo)
        try await session.claim(realm.id, progress)
        if unverified { try await session.rows("SELECT postern.note_verified('\(realm.id)')") }
        let rows = try await session.clear(realm.id, progress)
        try await session.unguard(realm.id, "guarded_tables")
        // Last and at once: the realm is listed as long as this command has something left to do.
        try await session.rows(
            "BEGIN; SELECT postern.clear_rows('\(realm.id)', 'realm', 1); "
                + "SELECT postern.end_move('\(realm.id)'); COMMIT")
        return rows + 1
    }
}
