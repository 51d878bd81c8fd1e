/// Batched lookups: the concurrent lookups of one realm in one statement (docs/decisions/0020).
extension SessionStore {
    /// An access token to be looked up.
    struct Lookup: Sendable {
        let session: UUIDValue
        let jti: [UInt8]
    }

    /// The sessions behind several access tokens, in the same order.
    static func look(
        _ database: Database, _ realm: UUIDValue, _ lookups: [Lookup]
    ) async throws(StoreError) -> [LiveSession?] {
        if lookups.count == 1, let only = lookups.first {
            return try await database.query(
                introspect, [.uuid(realm), .uuid(only.session), .bytes(only.jti)]
            ) { (row) throws(StoreError) in try row.liveSession() }
        }
        let found = try await database.query(
            introspectSeveral, [.uuid(realm), .uuids(lookups.map(\.session)), .byteArrays(lookups.map(\.jti))]
        ) { (row) throws(StoreError) in (number: try row.bigint(17), session: try row.liveSession()) }
        // A join promises no order.
        return found.sorted { $0.number < $1.number }.map(\.session)
    }

    private static let introspectSeveral = Statement(
        name: "introspect_several",
        sql: """
            SELECT active, user_id, client, client_id, scope, resource, amr, auth_time, token_salt,
                   email, email_verified, first_name, last_name, db_now, expires_at, refresh_expires_at, current_hash, number
              FROM unnest($2, $3) WITH ORDINALITY AS lookup (session, jti, number), postern.introspect($1, session, jti)
            """,
        effect: .readOnly)
}
