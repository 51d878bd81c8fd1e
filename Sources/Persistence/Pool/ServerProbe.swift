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
    private static let serverProbe = Statement(
        name: "server_probe",
        sql: """
            SELECT db_now, superuser, bypassrls, is_app_member, synchronous_commit, read_only FROM postern.server_probe()
            """,
        effect: .readOnly)

    /// Asks the database whether it is fit to be served from.
    public func probe() async throws(StoreError) -> ServerProbe {
        let rows = try await query(Self.serverProbe, []) { (row) throws(StoreError) in
            ServerProbe(
                databaseTime: try row.double(0), isSuperuser: try row.bool(1), bypassesRowSecurity: try row.bool(2),
                isApplicationMember: try row.bool(3), synchronousCommit: try row.text(4), isReadOnly: try row.bool(5))
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    private static let connectionLimits = Statement(
        name: "connection_limits",
        sql: """
            SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int, r.rolconnlimit,
                   d.datconnlimit
              FROM pg_catalog.pg_roles AS r, pg_catalog.pg_database AS d
             WHERE r.rolname = current_user AND d.datname = current_database()
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
}
