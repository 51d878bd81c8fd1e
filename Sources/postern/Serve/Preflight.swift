import Persistence

/// What must hold before the server starts: one clear line says what to do when it does not (contract §1).
enum Preflight {
    /// - Throws: ``CommandFailure``.
    static func check(conninfo: String) async throws {
        let probe: ServerProbe
        do {
            probe = try await Migrator(conninfo: conninfo).probe()
        } catch {
            throw CommandFailure("the database cannot be reached: \(error)")
        }
        if probe.isSuperuser || probe.bypassesRowSecurity {
            throw CommandFailure(
                "POSTERN_DATABASE_URL logs in as a superuser or BYPASSRLS role: use a login role that is only a member of postern_app")
        }
        guard probe.schemaVersion == Migrator.schemaVersion else {
            throw CommandFailure(
                "the database has schema version \(probe.schemaVersion), this binary needs \(Migrator.schemaVersion): run `postern migrate`")
        }
        guard probe.isMemberOfApp else {
            throw CommandFailure("the database role is not a member of postern_app: GRANT postern_app TO that role")
        }
        guard !probe.isReadOnly else {
            throw CommandFailure("the database is read-only (a standby?): name the primary in POSTERN_DATABASE_URL")
        }
        guard probe.clockSkew < 60 else {
            throw CommandFailure("the clocks of this machine and the database differ by \(Int(probe.clockSkew)) s: synchronise them")
        }
    }
}
