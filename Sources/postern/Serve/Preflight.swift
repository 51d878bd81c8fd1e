import Foundation
import Grants
import Persistence

/// What must hold before the server starts. A failed check ends the start with one line that says what to do.
enum Preflight {
    /// - Throws: ``CommandFailure``.
    static func check(conninfo: String) async throws {
        try await checkSchema(conninfo: conninfo)
        try await checkRole(conninfo: conninfo)
        _ = try await checkClock(conninfo: conninfo)
    }

    /// - Throws: ``CommandFailure`` when the role may too much or too little, or commits are not durable.
    static func checkRole(conninfo: String) async throws {
        let probe = try await OneOffDatabase.use(conninfo) { try await $0.probe() }
        if probe.isSuperuser || probe.bypassesRowSecurity {
            throw CommandFailure(
                "POSTERN_DATABASE_URL logs in as a superuser or BYPASSRLS role: "
                    + "use a login role that is only a member of postern_app")
        }
        guard probe.isApplicationMember else {
            throw CommandFailure(notMember)
        }
        guard !probe.isReadOnly else {
            throw CommandFailure("the database is read-only (a standby?): name the primary in POSTERN_DATABASE_URL")
        }
        guard probe.synchronousCommit == "on" else {
            throw CommandFailure(
                "synchronous_commit is \(probe.synchronousCommit) for this role: commits must be durable, set it to on")
        }
    }

    private static let notMember =
        "the database role is not a member of postern_app: GRANT postern_app TO that role"

    /// What to say of texts that were sorted by another version of the system's library; `nil`: nothing.
    static func collationWarning(conninfo: String) async throws -> String? {
        try await OneOffDatabase.use(conninfo) { try await $0.collationMismatch() }.map { mismatch in
            "the database sorts texts by version \(mismatch.now) of its collation, and its indexes were made by "
                + "\(mismatch.then): REINDEX DATABASE, then ALTER DATABASE … REFRESH COLLATION VERSION"
        }
    }

    /// - Returns: what both clocks showed.
    /// - Throws: ``CommandFailure`` when they differ too much.
    static func checkClock(conninfo: String) async throws -> DatabaseClock.Reading {
        let reading = try await OneOffDatabase.use(conninfo) { database in
            let asked = Date().timeIntervalSince1970
            let probe = try await database.probe()
            return DatabaseClock.Reading(
                database: probe.databaseTime, asked: asked, answered: Date().timeIntervalSince1970)
        }
        guard abs(reading.difference) <= DatabaseClock.maximumDifference else {
            let seconds = Int(abs(reading.difference).rounded())
            throw CommandFailure(
                "the clocks of this machine and the database differ by \(seconds) s: synchronise them")
        }
        return reading
    }

    /// - Returns: the sessions that the role may have.
    /// - Throws: ``CommandFailure`` when one process needs more.
    static func checkConnections(conninfo: String, connections: Int) async throws -> Int {
        let maximum = try await OneOffDatabase.use(conninfo) { try await $0.maximumSessions() }
        guard connections < maximum else {
            throw CommandFailure(
                """
                a process needs \(connections + 1) sessions (POSTERN_DB_CONNECTIONS and one that listens), \
                the database allows \(maximum): \
                raise max_connections or the role's CONNECTION LIMIT, or lower POSTERN_DB_CONNECTIONS
                """)
        }
        return maximum
    }

    /// - Returns: what the database lacks and this binary can do without, and whether a newer binary has migrated it.
    /// - Throws: ``CommandFailure`` when the database cannot be reached or has a schema that this binary does not work
    ///   with.
    @discardableResult
    static func checkSchema(conninfo: String) async throws -> SchemaStanding {
        let standing: SchemaStanding
        do {
            standing = try await Migrator(conninfo: conninfo).standing()
        } catch {
            // The reason that a role has no rights is asked for where the schema refuses it.
            if case .refused(_, _, "42501", _) = error,
                let isMember = try? await OneOffDatabase.use(conninfo, { try await $0.isApplicationMember() }),
                !isMember
            {
                throw CommandFailure(notMember)
            }
            throw CommandFailure("database: \(error)")
        }
        guard standing.isServed else {
            let missing = standing.pending
            let rest = missing.count > 3 ? " and \(missing.count - 3) more" : ""
            throw CommandFailure(
                """
                the database is behind this binary (\(missing.prefix(3).joined(separator: ", "))\(rest)): \
                run `postern migrate`
                """)
        }
        return standing
    }

    /// Counts what depends on each line of the key file, and opens every realm's signing keys.
    /// - Throws: ``CommandFailure`` when the file lacks a line that something depends on, or a key was altered.
    static func checkKeys(conninfo: String, keyring: Keyring) async throws -> KeyLineUse {
        let use = try await KeyLines.check(conninfo: conninfo, keyring: keyring)
        let unreadable = try await OneOffDatabase.use(conninfo) { database in
            let store = ConfigurationStore(database)
            var unreadable: [String] = []
            for id in Set(try await store.directory().values.map(\.realm)) {
                guard let realm = try await store.realm(id).map({ try Realm(json: $0) }) else { continue }
                if !realm.signingKeysOpen(with: keyring) { unreadable.append(realm.slug) }
            }
            return unreadable
        }
        guard unreadable.isEmpty else {
            throw CommandFailure(
                "POSTERN_SECRET_KEY_FILE does not open the signing keys of "
                    + "\(unreadable.sorted().joined(separator: ", ")): "
                    + "put the key they were sealed under back into the file, as an older line")
        }
        return use
    }
}
