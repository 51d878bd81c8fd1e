extension SessionStore {
    struct Calls: Sendable {
        let live = FunctionCall(
            "live_session", ["realm", "session", "jti"], effect: .readOnly, returns: LiveSession.columns)
        let liveBatch = FunctionCall<(number: Int, session: LiveSession?)>(
            "live_session", named: "live_session_batch", ["realm", .item("session"), .item("jti")], effect: .readOnly
        ) { columns in
            let number = columns("number", Int.self, sql: "item.number")
            let session = LiveSession.columns(&columns)
            return { (row) throws(StoreError) in (try row[number], try session(row)) }
        }
        /// Uses up proofs. The mark in each makes the statement safe to run again.
        let liveByProof = FunctionCall<(number: Int, session: ProvenSession)>(
            "live_session_by_proof", ["realm", .item("session"), .item("jti"), .item("proof")], effect: .idempotent
        ) { columns in
            let number = columns("number", Int.self, sql: "item.number")
            let proof = columns("proof", String.self)
            let session = LiveSession.columns(&columns)
            return { (row) throws(StoreError) in
                switch try row[proof] {
                case "used": (try row[number], .proofUsed)
                case "old": (try row[number], .proofForgotten)
                default: (try row[number], .session(try session(row)))
                }
            }
        }
        let rotate = rotation("rotate_session")
        let rotateUnlessBusy = rotation("rotate_session_unless_busy")
        let rotateBatch = rotations("rotate_session")
        let rotateBatchUnlessBusy = rotations("rotate_session_unless_busy")
        /// No row when one of the proofs was not fresh.
        let rotateBatchByProof = FunctionCall<(number: Int, outcome: RotationOutcome)>(
            "rotate_sessions",
            [
                "realm", "client", "session", "generation", "hash", "successor_hash", "lifetime", "source",
                "server_key", "mark", "proof",
            ] + ProofUses.arguments,
            effect: .idempotent
        ) { columns in
            let number = columns("number", Int.self)
            let outcome = RotationOutcome.columns(&columns)
            return { (row) throws(StoreError) in (try row[number], try outcome(row)) }
        }
        let revokeSession = FunctionCall<Bool>(
            "revoke_session", ["realm", "client", "session", "reason"], effect: .idempotent)
        let revokeAccessToken = FunctionCall<Bool>(
            "revoke_access_token", ["realm", "client", "session", "jti", "expires"], effect: .idempotent)

        private static func rotation(_ function: String) -> FunctionCall<(RotationOutcome?, PermitVerdict)> {
            FunctionCall(
                function,
                [
                    "realm", "client", "session", "generation", "hash", "successor_hashes", "lifetime", "source",
                    "server_key", "mark", "proof", PermitRequest.argument, "scope", "resource", "level", "max_age",
                ],
                effect: .idempotent
            ) { columns in columns.limited(RotationOutcome.columns(&columns)) }
        }

        /// For rotations that ask for no permits and keep the family's scope.
        private static func rotations(_ function: String) -> FunctionCall<(number: Int, outcome: RotationOutcome)> {
            FunctionCall(
                function, named: function + "_batch",
                [
                    "realm", .item("client"), .item("session"), .item("generation"), .item("hash"),
                    .item("successor_hashes") { "ARRAY[\($0)]" }, .item("lifetime"), .item("source"),
                    .item("server_key"), .item("mark"), .item("proof") { "NULLIF(\($0), '')" },
                    .constant("permits", "NULL"),
                ],
                effect: .idempotent
            ) { columns in
                let number = columns("number", Int.self, sql: "item.number")
                let outcome = RotationOutcome.columns(&columns)
                return { (row) throws(StoreError) in (try row[number], try outcome(row)) }
            }
        }
    }
    static let calls = Calls()
}

extension SessionStore.RotationOutcome {
    fileprivate static func columns(_ columns: inout Columns) -> RowDecoder<Self> {
        let outcome = columns("outcome", String.self), reason = columns("reason", String?.self)
        let family = columns.record { (row) throws(StoreError) in
            SessionStore.Rotated(
                user: try row("user_id"), scope: try row("scope"), resources: try row("resource"), amr: try row("amr"),
                acr: try row("acr"), authTime: try row("auth_time"), tokenSalt: try row("token_salt"),
                currentHash: try row("current_hash"),
                now: try row("db_now"), expiresAt: try row("expires_at"))
        }
        let repeated: RowDecoder<SessionStore.Rotated> = { (row) throws(StoreError) in
            var rotated = try family(row)
            rotated.isRepeated = true
            return rotated
        }
        return { (row) throws(StoreError) in
            switch try row[outcome] {
            case "rotated": .rotated(try family(row))
            case "retried": .rotated(try repeated(row))
            case "reuse": .reused
            case "invalid_scope": .invalidScope
            case "invalid_target": .invalidTarget
            case "unmet": .unmet
            case "proof_used": .proofUsed
            case "proof_old": .proofForgotten
            case "busy": .busy
            case let word: Self.refusal(try row[reason] ?? word, isOfClient: word == "client_fault")
            }
        }
    }

    private static func refusal(_ reason: String, isOfClient: Bool) -> Self {
        guard isOfClient, let fault = StoreError.ClientFault(rawValue: reason) else { return .refused(reason) }
        return .clientFault(fault)
    }
}

extension LiveSession {
    /// `nil` when the session is not alive.
    fileprivate static func columns(_ columns: inout Columns) -> RowDecoder<Self?> {
        let isActive = columns("active", Bool.self)
        let session = columns.record { (row) throws(StoreError) in
            LiveSession(
                user: try row("user_id"), client: try row("client"), clientID: try row("client_id"),
                scope: try row("scope"), resources: try row("resource"), amr: try row("amr"),
                acr: try row("acr"), authTime: try row("auth_time"), tokenSalt: try row("token_salt"),
                email: try row("email"),
                emailVerified: try row("email_verified"), firstName: try row("first_name"),
                lastName: try row("last_name"), now: try row("db_now"), expiresAt: try row("expires_at"),
                refreshExpiresAt: try row("refresh_expires_at"), refreshHash: try row("current_hash"),
                thumbprint: try row("jkt"), isCotters: try row("cotter"))
        }
        return { (row) throws(StoreError) in try row[isActive] ? session(row) : nil }
    }
}
