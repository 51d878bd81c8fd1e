/// How a refresh runs: batched with others, with a short wait for a locked row, and repeated when an answer was lost
/// (docs/decisions/0020 and 0023).
extension SessionStore {
    /// Consumes a refresh token, or repeats the answer of its first use within the retry window. Safe to run again.
    ///
    /// `.busy` means that another transaction holds the session's row. The permits have not been taken then.
    public func rotate(_ rotation: Rotation) async throws(StoreError) -> (RotationOutcome, PermitVerdict) {
        let waits = !lockedRows.areKnown(in: rotation.realm)
        do throws(StoreError) {
            let answer = try await ask(rotation, waiting: waits)
            if case .busy = answer.0 { lockedRows.seen(in: rotation.realm) }
            return answer
        } catch {
            // One caller's locked row or error must not fail the others of its batch, so each caller retries by itself.
            // An answer may also have been lost: the mark tells the database that this is the same request.
            if case .timedOut = error, waits { lockedRows.seen(in: rotation.realm) }
            return try await repeated(rotation, after: error)
        }
    }

    /// Retries a rotation whose row was busy. Holds no connection while it waits, and takes no permits.
    /// - Returns: `.busy` when the row stays locked for a second.
    public func rotateWhenFree(_ rotation: Rotation) async throws(StoreError) -> RotationOutcome {
        var rotation = rotation
        rotation.permits = PermitRequest()
        guard lockedRows.startsWaiting(in: rotation.realm) else { return .busy }
        defer { lockedRows.endsWaiting(in: rotation.realm) }
        for pause in [10, 20, 40, 80, 160, 320, 320] {
            do { try await Task.sleep(for: .milliseconds(pause + .random(in: 0...pause / 4))) } catch { throw .cancelled }
            let outcome = try await ask(rotation, waiting: false).0
            guard case .busy = outcome else { return outcome }
            lockedRows.seen(in: rotation.realm)
        }
        return .busy
    }

    /// One attempt.
    private func ask(_ rotation: Rotation, waiting: Bool) async throws(StoreError) -> (RotationOutcome, PermitVerdict) {
        guard rotation.isPlain else { return try await Self.rotateAlone(database, rotation, waiting: waiting) }
        let outcome = try await (waiting ? rotations : cautious).answer(rotation.realm, rotation)
        return (outcome, PermitVerdict(granted: [], refused: nil, retryAfter: 0))
    }

    /// Retries: first in a batch that does not wait for a row, then alone. When the rotation may have happened, it
    /// retries for about two seconds, so that a short fault of the database can pass.
    private func repeated(
        _ rotation: Rotation, after failure: StoreError
    ) async throws(StoreError) -> (RotationOutcome, PermitVerdict) {
        var error = failure
        var isInDoubt = Self.mayHaveHappened(failure)
        guard isInDoubt || Self.mayBeOfACompanion(failure) else { throw failure }
        for (attempt, pause) in [0, 0, 50, 100, 200, 400, 800].enumerated() {
            if pause > 0 {
                do { try await Task.sleep(for: .milliseconds(pause)) } catch { throw .cancelled }
            }
            do throws(StoreError) {
                return attempt == 0
                    ? try await ask(rotation, waiting: false)
                    : try await Self.rotateAlone(database, rotation, waiting: false)
            } catch let next {
                error = next
            }
            isInDoubt = isInDoubt || Self.mayHaveHappened(error)
            guard isInDoubt || (attempt == 0 && Self.mayBeOfACompanion(error)), error != .cancelled else { break }
        }
        throw error
    }

    private static func mayHaveHappened(_ error: StoreError) -> Bool {
        switch error {
        case .timedOut, .inDoubt, .unavailable(.connectionLost): true
        case .unavailable, .cancelled, .conflict, .violation, .rejected, .malformedResult: false
        }
    }

    private static func mayBeOfACompanion(_ error: StoreError) -> Bool {
        switch error {
        case .conflict, .violation, .rejected: true
        case .timedOut, .inDoubt, .unavailable, .cancelled, .malformedResult: false
        }
    }

    private static func rotateAlone(
        _ database: Database, _ rotation: Rotation, waiting: Bool
    ) async throws(StoreError) -> (RotationOutcome, PermitVerdict) {
        let parameters: [Parameter] =
            [
                .uuid(rotation.realm), .uuid(rotation.client), .uuid(rotation.session), .int(rotation.generation),
                .bytes(rotation.hash), .byteArrays(rotation.successorHashes), .int(rotation.refreshTokenLifetime),
                .text(rotation.source), .bytes(rotation.serverKey), .bigint(rotation.mark),
            ] + rotation.permits.parameters + [
                rotation.scope.map { .texts($0) } ?? .null, rotation.resources.map { .texts($0) } ?? .null,
            ]
        let rows = try await database.query(waiting ? rotateOne : rotateOneUnlessBusy, parameters) {
            (row) throws(StoreError) in
            let verdict = try row.permitVerdict(granted: 12, refused: 10, retryAfter: 11)
            return (try outcome(row), verdict)
        }
        guard let only = rows.first else { throw .malformedResult }
        return only
    }

    /// Rotates several families in one transaction, in the order of their ids, so that two such transactions cannot
    /// deadlock.
    static func rotate(
        _ database: Database, _ realm: UUIDValue, _ rotations: [Rotation], waiting: Bool
    ) async throws(StoreError) -> [RotationOutcome] {
        if rotations.count == 1, let only = rotations.first {
            return [try await rotateAlone(database, only, waiting: waiting).0]
        }
        let order = rotations.indices.sorted { rotations[$0].session < rotations[$1].session }
        let sorted = order.map { rotations[$0] }
        let outcomes = try await database.query(
            waiting ? rotateSeveral : rotateSeveralUnlessBusy,
            [
                .uuid(realm), .uuids(sorted.map(\.client)), .uuids(sorted.map(\.session)),
                .ints(sorted.map(\.generation)),
                .byteArrays(sorted.map(\.hash)), .byteArrays(sorted.map { $0.successorHashes[0] }),
                .ints(sorted.map(\.refreshTokenLifetime)), .texts(sorted.map(\.source)),
                .byteArrays(sorted.map(\.serverKey)), .bigints(sorted.map(\.mark)),
            ]
        ) { (row) throws(StoreError) in (number: Int(try row.bigint(14)), outcome: try outcome(row)) }
        guard outcomes.count == rotations.count else { throw .malformedResult }
        var results = [RotationOutcome?](repeating: nil, count: rotations.count)
        for (number, outcome) in outcomes where order.indices.contains(number - 1) {
            results[order[number - 1]] = outcome
        }
        let complete = results.compactMap { $0 }
        guard complete.count == rotations.count else { throw .malformedResult }
        return complete
    }

    private static let rotateOne = Statement(
        name: "rotate_refresh_token",
        sql: """
            SELECT outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
                   limit_ord, retry_after, granted, expires_at
              FROM postern.rotate_refresh_token($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
            """,
        effect: .idempotent)
    private static let rotateOneUnlessBusy = Statement(
        name: "rotate_unless_busy",
        sql: """
            SELECT outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
                   limit_ord, retry_after, granted, expires_at
              FROM postern.rotate_unless_busy($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
            """,
        effect: .idempotent)
    private static let rotateSeveral = several("rotate_refresh_token")
    private static let rotateSeveralUnlessBusy = several("rotate_unless_busy")

    private static func several(_ function: String) -> Statement {
        Statement(
            name: function + "_several",
            sql: """
                SELECT outcome, reason, user_id, scope, resource, amr, auth_time, token_salt, current_hash, db_now,
                       limit_ord, retry_after, granted, expires_at, number
                  FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10)
                       WITH ORDINALITY AS rotation
                            (client, session, generation, hash, successor, lifetime, origin, server_key, mark, number),
                       postern.\(function)($1, client, session, generation, hash, ARRAY[successor], lifetime, origin,
                                            server_key, mark, '{}', '{}', '{}', '{}', '{}')
                """,
            effect: .idempotent)
    }
}

extension SessionStore.Rotation {
    /// Whether it is like nearly all others: no permit to take, the family's own scope, one server key.
    var isPlain: Bool { permits.isEmpty && scope == nil && resources == nil && successorHashes.count == 1 }
}
