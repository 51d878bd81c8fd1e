extension RealmMove {
    /// How long writes may wait before the realm is opened again and closed another time.
    private static let longestPause = Duration.milliseconds(900)
    /// The part of it in which writes under way must end.
    private static let writers = "500ms"
    /// How long both clusters are tried after a failure, for one of them may be failing over.
    private static let maximumWait = Duration.seconds(90)

    /// What the change of the cluster leaves.
    struct Change {
        /// Sessions that see both clusters as they were between closing and opening.
        let views: Sessions
        /// From closing to opening.
        let pause: Duration
    }

    /// The pause: closes the realm in one cluster and opens it in the other.
    /// - Parameter sessions: replaced after a failure.
    /// - Returns: `nil` when the realm was opened without an answer.
    func change(_ sessions: inout Sessions) async throws -> Change? {
        var attempt = 0
        while true {
            attempt += 1
            let since = try await copyProofs(sessions)
            try await follow(sessions)
            let views = (
                old: try await Superuser(cluster: from.name, conninfo: from.conninfo),
                new: try await Superuser(cluster: to.name, conninfo: to.conninfo)
            )
            progress("changing over")
            do {
                let pause = try await changeOver(sessions, views, proofsSince: since)
                progress("\(realm.slug) is served by \(to.name); writes waited \(pause.milliseconds) ms")
                return Change(views: views, pause: pause)
            } catch {
                // Ended, so that the next sessions are the only ones of this realm.
                for session in [views.old, views.new, sessions.old, sessions.new] { await session.end() }
                let isOpen: Bool
                (sessions, isOpen) = try await goBack(after: error)
                if isOpen { return nil }
                guard attempt < 10, (error as? StatementFailure)?.sqlstate == "55P03" else { throw error }
                progress("the realm is open in \(from.name) again: \(error); trying another time")
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func changeOver(
        _ sessions: Sessions, _ views: Sessions, proofsSince since: String
    ) async throws -> Duration {
        let began = ContinuousClock.now
        try await sessions.old.rows("SELECT postern.close_realm(\(id))")
        let written = try await sessions.old.rows(
            "SELECT w ->> 'mark', w FROM postern.end_writes(\(id), '\(Self.writers)', '\(since)') AS w")
        guard let mark = written.first?[0], let last = written.first?[1] else {
            throw StatementFailure("cluster \(from.name): no answer to end_writes")
        }
        while try await !hasArrived(mark, sessions.new) {
            guard ContinuousClock.now < began + Self.longestPause else {
                throw StatementFailure("the last changes did not arrive in \(to.name) in time", sqlstate: "55P03")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        for view in [views.old, views.new] {
            try await view.rows("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT postern.placement(\(id))")
        }
        try await sessions.new.rows("SELECT postern.open_realm(\(id), \(literal(last)))")
        return ContinuousClock.now - began
    }

    /// After a failure in the pause: opens the realm where it was, unless the other cluster serves it. An opening whose
    /// answer was lost may have happened, or may still run in a session that `open` waits for.
    /// - Returns: new sessions, and whether the other cluster serves the realm.
    private func goBack(after failure: any Error) async throws -> (Sessions, Bool) {
        let deadline = ContinuousClock.now + Self.maximumWait
        var told = false
        while true {
            do {
                let sessions = try await open()
                let isOpen = try await serves(sessions.new)
                if !isOpen { try await sessions.old.rows("SELECT postern.reopen_realm(\(id))") }
                return (sessions, isOpen)
            } catch let error as StatementFailure {
                guard ContinuousClock.now < deadline else { throw failure }
                if !told {
                    progress("\(failure)\nboth clusters are asked which of them serves \(realm.slug): \(error)")
                }
                told = true
                try await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    /// Ends the copying and compares what both clusters had when the realm changed over.
    /// - Parameter views: sessions that see that moment; `nil` when they are gone.
    /// - Returns: how many rows were compared.
    func finish(_ sessions: Sessions, verifying views: Sessions?) async throws -> Int {
        try await endCopy(sessions)
        try await sessions.new.unguard(realm.id, "tables_with_transactions")
        guard let views else {
            if try await sessions.old.value(
                "SELECT count(*) FROM postern.realm_move WHERE realm_id = \(id) "
                    + "AND verified_at IS NOT NULL") == "1"
            {
                return 0
            }
            progress(
                "the rows were not compared: the run that changed the cluster ended before. "
                    + "postern realm clear --unverified removes the old ones all the same")
            return 0
        }
        progress("comparing the rows of both clusters")
        var rows = 0
        for table in try await sessions.old.rows("SELECT postern.tables_of_realms()").map({ $0[0] }) {
            let sum = "SELECT * FROM postern.realm_checksum(\(id), '\(table)')"
            async let before = views.old.rows(sum)
            async let after = views.new.rows(sum)
            let (left, arrived) = try await (before, after)
            guard left == arrived, let count = left.first?.first.flatMap({ Int($0) }) else {
                throw StatementFailure(
                    "table \(table) differs: \(left) in \(from.name), \(arrived) in \(to.name). "
                        + "\(realm.slug) is served by \(to.name); the rows in \(from.name) are kept as they were")
            }
            rows += count
        }
        for view in [views.old, views.new] { try await view.rows("COMMIT") }
        try await sessions.old.rows("SELECT postern.note_verified(\(id))")
        return rows
    }
}
