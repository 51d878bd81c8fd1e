/// What a server should know about its database before it serves.
public struct ServerProbe: Sendable, Equatable {
    /// The database clock, seconds since the epoch.
    public let databaseTime: Double
    /// The role passes every check, row security included.
    public let isSuperuser: Bool
    /// The role passes row security.
    public let bypassesRowSecurity: Bool
    /// The role is a member of `postern_app`.
    public let isApplicationMember: Bool
    /// `on`, or commits may be forgotten after they were answered.
    public let synchronousCommit: String
    /// A standby, or configured to refuse writes.
    public let isReadOnly: Bool
}

extension Database {
    /// Asks the database whether it is fit to be served from.
    public func probe() async throws(StoreError) -> ServerProbe {
        try await one(ServerProbe.calls.probe)
    }

    /// Whether this role may work with the schema. It needs no right to the schema itself. `nil`: the database was
    /// never migrated.
    public func isApplicationMember() async throws(StoreError) -> Bool? {
        try await query(Self.membership, []) { (row) throws(StoreError) in try row.int(0) == 1 }.first
    }

    private static let membership = Statement(
        name: "membership",
        sql: """
            SELECT pg_catalog.pg_has_role(r.oid, 'USAGE')::int FROM pg_catalog.pg_roles AS r
             WHERE r.rolname = 'postern_app'
            """,
        effect: .readOnly)

    /// What the database's texts were sorted by when its indexes were made, and by now.
    /// - Returns: `nil` while both agree.
    public func collationMismatch() async throws(StoreError) -> (then: String, now: String)? {
        try await query(Self.collation, []) { (row) throws(StoreError) in (try row.text(0), try row.text(1)) }.first
    }

    private static let collation = Statement(
        name: "collation_mismatch",
        sql: """
            SELECT d.datcollversion, coalesce(pg_catalog.pg_database_collation_actual_version(d.oid), 'none')
              FROM pg_catalog.pg_database AS d
             WHERE d.datname = current_database()
               AND d.datcollversion IS DISTINCT FROM pg_catalog.pg_database_collation_actual_version(d.oid)
               AND d.datcollversion IS NOT NULL
            """,
        effect: .readOnly)

    /// The most sessions that this role may have in this database.
    public func maximumSessions() async throws(StoreError) -> Int {
        let rows = try await query(Self.connectionLimits, []) { (row) throws(StoreError) in
            (try row.int(0), try row.int(1), try row.int(2))
        }
        guard let (server, role, database) = rows.first else { throw .malformedResult }
        return Int([role, database].filter { $0 >= 0 }.reduce(server, min))
    }

    private static let connectionLimits = Statement(
        name: "connection_limits",
        sql: """
            SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
                   r.rolconnlimit, d.datconnlimit
              FROM pg_catalog.pg_roles AS r, pg_catalog.pg_database AS d
             WHERE r.rolname = current_user AND d.datname = current_database()
            """,
        effect: .readOnly)
}

extension ServerProbe {
    struct Calls: Sendable {
        let probe = FunctionCall<ServerProbe>("server_probe", effect: .readOnly) { (row) throws(StoreError) in
            ServerProbe(
                databaseTime: try row("db_now"), isSuperuser: try row("superuser"),
                bypassesRowSecurity: try row("bypassrls"),
                isApplicationMember: try row("is_app_member"),
                synchronousCommit: try row("synchronous_commit"), isReadOnly: try row("read_only"))
        }
    }
    static let calls = Calls()
}
