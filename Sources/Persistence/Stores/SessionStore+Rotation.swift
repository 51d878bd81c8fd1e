/// How a refresh runs: batched with others, with a short wait for a locked row, and repeated when an answer was lost
/// (docs/decisions/0020 and 0023).
extension SessionStore {
    /// Consumes a refresh token, or repeats the answer of its first use. Safe to run again.
    ///
    /// No outcome means that a permit was refused. `.busy` means that another transaction holds the session's row; the
    /// permits have not been taken then.
    public func rotate(_ rotation: Rotation) async throws(StoreError) -> (RotationOutcome?, PermitVerdict) {
        let waits = !lockedRows.areKnown(in: rotation.realm)
        do throws(StoreError) {
            let answer = try await attempt(rotation, waiting: waits)
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
            do { try await Task.sleep(for: .milliseconds(pause + .random(in: 0...pause / 4))) } catch {
                throw .cancelled
            }
            guard let outcome = try await attempt(rotation, waiting: false).0 else { throw .malformedResult }
            guard case .busy = outcome else { return outcome }
            lockedRows.seen(in: rotation.realm)
        }
        return .busy
    }

    /// One attempt, in a batch where that is possible.
    private func attempt(
        _ rotation: Rotation, waiting: Bool
    ) async throws(StoreError) -> (RotationOutcome?, PermitVerdict) {
        guard rotation.canShare else { return try await Self.rotateOne(rotation, database, waiting: waiting) }
        let outcome = try await (waiting ? waitingRotations : cautiousRotations).submit(rotation, in: rotation.realm)
        return (outcome, PermitVerdict(granted: [], refused: nil, retryAfter: 0))
    }

    /// Retries: first in a batch that does not wait for a row, then alone. When the rotation may have happened, it
    /// retries for about two seconds, so that a short fault of the database can pass.
    private func repeated(
        _ rotation: Rotation, after failure: StoreError
    ) async throws(StoreError) -> (RotationOutcome?, PermitVerdict) {
        var error = failure
        var isInDoubt = Self.mayHaveHappened(failure)
        guard isInDoubt || Self.mayBeOfTheBatch(failure) else { throw failure }
        for (round, pause) in [0, 0, 50, 100, 200, 400, 800].enumerated() {
            if pause > 0 {
                do { try await Task.sleep(for: .milliseconds(pause)) } catch { throw .cancelled }
            }
            do throws(StoreError) {
                return round == 0
                    ? try await attempt(rotation, waiting: false)
                    : try await Self.rotateOne(rotation, database, waiting: false)
            } catch let next {
                error = next
            }
            isInDoubt = isInDoubt || Self.mayHaveHappened(error)
            guard isInDoubt || (round == 0 && Self.mayBeOfTheBatch(error)), error != .cancelled else { break }
        }
        throw error
    }

    private static func mayHaveHappened(_ error: StoreError) -> Bool {
        switch error {
        case .timedOut, .inDoubt, .unavailable(.connectionLost): true
        case .unavailable, .cancelled, .conflict, .violation, .rejected, .proofUsed, .proofForgotten, .clientFault,
            .malformedResult:
            false
        }
    }

    private static func mayBeOfTheBatch(_ error: StoreError) -> Bool {
        switch error {
        case .conflict, .violation, .rejected: true
        case .timedOut, .inDoubt, .unavailable, .cancelled, .proofUsed, .proofForgotten, .clientFault,
            .malformedResult:
            false
        }
    }
}
