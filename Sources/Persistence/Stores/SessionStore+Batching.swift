/// Lookups and rotations of one realm that arrive at the same moment share a statement (docs/decisions/0020).
extension SessionStore {
    /// An access token to be looked up.
    struct Lookup: Sendable {
        let session: UUIDValue
        let jti: [UInt8]
    }

    /// The sessions behind several access tokens, in the same order.
    static func lookUp(
        _ lookups: [Lookup], _ realm: UUIDValue, _ database: Database
    ) async throws(StoreError) -> [LiveSession?] {
        if lookups.count == 1, let only = lookups.first {
            return try await database.all(
                calls.live, ["realm": realm, "session": only.session, "jti": only.jti])
        }
        let found = try await database.all(
            calls.liveBatch,
            ["realm": realm, "session": lookups.map(\.session), "jti": lookups.map(\.jti)])
        // A join promises no order.
        return found.sorted { $0.number < $1.number }.map(\.session)
    }

    /// A token to be looked up for a request with a proof.
    struct ProvenLookup: Sendable {
        let lookup: Lookup
        let proof: ProofUse
    }

    /// What is found for a token and a proof.
    enum ProvenSession: Sendable {
        case session(LiveSession?)
        case proofUsed
        case proofForgotten
    }

    /// Uses up the proofs and looks up the sessions, in the same order.
    static func lookUpByProof(
        _ lookups: [ProvenLookup], _ realm: UUIDValue, _ database: Database
    ) async throws(StoreError) -> [ProvenSession] {
        let order = lookups.indices.sorted { lookups[$0].proof.key < lookups[$1].proof.key }
        let sorted = order.map { lookups[$0] }
        let found = try await database.all(
            calls.liveByProof,
            [
                "realm": realm, "session": sorted.map(\.lookup.session), "jti": sorted.map(\.lookup.jti),
                "proof": sorted.map(\.proof.packed),
            ])
        return try inOrder(found.map { ($0.number, $0.session) }, order)
    }

    /// Results by their numbers, put into the order in which they were asked for.
    private static func inOrder<R>(_ found: [(Int, R)], _ order: [Int]) throws(StoreError) -> [R] {
        var results = [R?](repeating: nil, count: order.count)
        for (number, result) in found where order.indices.contains(number - 1) { results[order[number - 1]] = result }
        let complete = results.compactMap { $0 }
        guard complete.count == order.count, found.count == order.count else { throw .malformedResult }
        return complete
    }

    /// Rotates several families in one transaction, in the order of their ids, so that two such transactions cannot
    /// deadlock.
    /// - Parameter waiting: whether a rotation waits for a locked row, or finds it busy.
    static func rotateBatch(
        _ rotations: [Rotation], _ realm: UUIDValue, _ database: Database, waiting: Bool
    ) async throws(StoreError) -> [RotationOutcome] {
        if rotations.count == 1, let only = rotations.first {
            guard let outcome = try await rotateOne(only, database, waiting: waiting).0 else { throw .malformedResult }
            return [outcome]
        }
        if waiting, let period = ProofUses.commonestPeriod(of: rotations.compactMap(\.proof)) {
            // Proofs of several slots of the store: one statement for those of most, another one for the rest.
            let (most, rest) = rotations.indices.reduce(into: ([Int](), [Int]())) { parts, index in
                let isOther = rotations[index].proof.map { $0.period != period } ?? false
                if isOther { parts.1.append(index) } else { parts.0.append(index) }
            }
            var outcomes = [RotationOutcome?](repeating: nil, count: rotations.count)
            for part in [most, rest] {
                let found = try await rotateBatch(part.map { rotations[$0] }, realm, database, waiting: waiting)
                for (index, outcome) in zip(part, found) { outcomes[index] = outcome }
            }
            return outcomes.compactMap { $0 }
        }
        let order = rotations.indices.sorted { rotations[$0].session < rotations[$1].session }
        let sorted = order.map { rotations[$0] }
        let tokens: Arguments = [
            "realm": realm, "client": sorted.map(\.client), "session": sorted.map(\.session),
            "generation": sorted.map(\.generation), "hash": sorted.map(\.hash),
        ]
        let rest: Arguments = [
            "lifetime": sorted.map(\.refreshTokenLifetime), "source": sorted.map(\.source),
            "server_key": sorted.map(\.serverKey), "mark": sorted.map(\.mark),
        ]
        // Not where nothing may be waited for: a busy family leaves its proof unused.
        if waiting, let proofs = ProofUses(sorted.compactMap(\.proof)) {
            let outcomes = try await database.all(
                calls.rotateBatchByProof,
                tokens + ["successor_hash": sorted.map { $0.successorHashes[0] }] + rest
                    + ["proof": sorted.map { $0.proof?.packedWhenUsed ?? [] }] + proofs.arguments)
            if !outcomes.isEmpty { return try inOrder(outcomes.map { ($0.number, $0.outcome) }, order) }
        }
        let outcomes = try await database.all(
            waiting ? calls.rotateBatch : calls.rotateBatchUnlessBusy,
            tokens + ["successor_hashes": sorted.map { $0.successorHashes[0] }] + rest
                + ["proof": sorted.map { $0.proof?.packed ?? [] }])
        return try inOrder(outcomes.map { ($0.number, $0.outcome) }, order)
    }

    /// Rotates one family in a transaction of its own.
    static func rotateOne(
        _ rotation: Rotation, _ database: Database, waiting: Bool
    ) async throws(StoreError) -> (RotationOutcome?, PermitVerdict) {
        let token: Arguments = [
            "realm": rotation.realm, "client": rotation.client, "session": rotation.session,
            "generation": rotation.generation, "hash": rotation.hash, "successor_hashes": rotation.successorHashes,
            "lifetime": rotation.refreshTokenLifetime, "source": rotation.source, "server_key": rotation.serverKey,
            "mark": rotation.mark, "proof": rotation.proof?.packed,
        ]
        let narrowed: Arguments = [
            "scope": rotation.scope, "resource": rotation.resources, "level": rotation.level,
            "max_age": rotation.maximumAge,
        ]
        return try await database.one(
            waiting ? calls.rotate : calls.rotateUnlessBusy, token + rotation.permits.arguments + narrowed)
    }
}

extension SessionStore.Rotation {
    /// Whether it can share a statement, like nearly all: no permit to take, the family's own scope, one server key.
    var canShare: Bool {
        permits.isEmpty && scope == nil && resources == nil && level == nil && maximumAge == nil
            && successorHashes.count == 1
    }
}
