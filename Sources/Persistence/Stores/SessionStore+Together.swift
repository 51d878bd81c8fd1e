/// What several requests ask of one realm at the same moment, in one statement (decision 20).
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

    /// Rotates several families in one transaction, in the order of their ids, so that two such transactions cannot deadlock.
    ///
    /// Whatever befalls the transaction as a whole, a lock that was not to be had for instance, must not befall those who have
    /// nothing to do with it: then each is tried by itself. That is safe: a rotation may be repeated.
    static func rotate(
        _ database: Database, _ realm: UUIDValue, _ rotations: [Rotation]
    ) async -> [Result<RotationOutcome, StoreError>] {
        if rotations.count == 1, let only = rotations.first { return [await rotateAlone(database, only)] }
        do throws(StoreError) {
            return try await rotateTogether(database, realm, rotations)
        } catch {
            if case .unavailable = error { return rotations.map { _ in .failure(error) } }
        }
        let attempts = rotations.map { rotation in Task { await rotateAlone(database, rotation) } }
        var results: [Result<RotationOutcome, StoreError>] = []
        for attempt in attempts { results.append(await attempt.value) }
        return results
    }

    private static func rotateAlone(
        _ database: Database, _ rotation: Rotation
    ) async -> Result<RotationOutcome, StoreError> {
        do throws(StoreError) {
            return .success(try await rotate(database, rotation).0)
        } catch {
            return .failure(error)
        }
    }

    private static func rotateTogether(
        _ database: Database, _ realm: UUIDValue, _ rotations: [Rotation]
    ) async throws(StoreError) -> [Result<RotationOutcome, StoreError>] {
        let order = rotations.indices.sorted { rotations[$0].session < rotations[$1].session }
        let sorted = order.map { rotations[$0] }
        let outcomes = try await database.query(
            refreshSeveral,
            [
                .uuid(realm), .uuids(sorted.map(\.client)), .uuids(sorted.map(\.session)),
                .ints(sorted.map(\.generation)),
                .byteArrays(sorted.map(\.hash)), .byteArrays(sorted.map { $0.successorHashes[0] }),
                .ints(sorted.map(\.refreshTokenLifetime)), .texts(sorted.map(\.source)),
            ]
        ) { (row) throws(StoreError) in (number: Int(try row.bigint(14)), outcome: try outcome(row)) }
        guard outcomes.count == rotations.count else { throw .malformedResult }
        var results = rotations.map { _ in Result<RotationOutcome, StoreError>.failure(.malformedResult) }
        for (number, outcome) in outcomes where order.indices.contains(number - 1) {
            results[order[number - 1]] = .success(outcome)
        }
        return results
    }

    private static let introspectSeveral = Statement(
        name: "introspect_several",
        sql: """
            SELECT active, user_id, client, client_id, scope, resource, amr, auth_time, token_salt,
                   email, email_verified, first_name, last_name, db_now, expires_at, refresh_expires_at, current_hash, number
              FROM unnest($2, $3) WITH ORDINALITY AS lookup (session, jti, number), postern.introspect($1, session, jti)
            """,
        effect: .readOnly)
    private static let refreshSeveral = Statement(
        name: "refresh_several",
        sql: """
            SELECT outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
                   limit_ord, retry_after, granted, expires_at, number
              FROM unnest($2, $3, $4, $5, $6, $7, $8)
                   WITH ORDINALITY AS rotation (client, session, generation, hash, successor, lifetime, origin, number),
                   postern.refresh($1, client, session, generation, hash, ARRAY[successor], 0, lifetime, origin,
                                   '{}', '{}', '{}', '{}', '{}')
            """,
        effect: .idempotent)
}

extension SessionStore.Rotation {
    /// Whether it is like nearly all others: no permit to take, the family's own scope, one server key.
    var isPlain: Bool { permits.isEmpty && scope == nil && resources == nil && successorHashes.count == 1 }
}
