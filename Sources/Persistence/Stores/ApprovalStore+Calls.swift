extension ApprovalStore {
    struct Calls: Sendable {
        let ask = FunctionCall<(Asked?, PermitVerdict)>(
            "ask_approval", Request.arguments, effect: .once
        ) { columns in
            let event = columns("event_id", Int?.self)
            let askedAt = columns("asked_at", Double?.self), expiresAt = columns("expires_at", Double?.self)
            return columns.limited { (row) throws(StoreError) in
                Asked(
                    eventID: try row[event], askedAt: try row.some(row[askedAt]),
                    expiresAt: try row.some(row[expiresAt]))
            }
        }
        let resolve = FunctionCall<(resolved: Int, realm: UUIDValue)>(
            "resolve_approvals", ["limit", "after", "age"], effect: .once, payer: .server
        ) { (row) throws(StoreError) in
            (resolved: try row("resolved"), realm: try row("last_realm"))
        }
        let inbox = FunctionCall<(Looked?, PermitVerdict)>(
            "approval_inbox", ["realm", ProofUse.argument, PermitRequest.argument], effect: .once
        ) { columns in
            let user = columns("user_id", UUIDValue?.self), list = columns("approvals", String?.self)
            let probation = columns("probation_until", Double?.self), quiet = columns("quiet_until", Double?.self)
            return columns.limited { (row) throws(StoreError) in
                guard let user = try row[user] else { return .unknown }
                return .device(
                    Inbox(
                        user: user, probationUntil: try row[probation], quietUntil: try row[quiet],
                        approvals: try LeasedMessage.document(row[list]) ?? []))
            }
        }
        let answer = FunctionCall<(Answered?, PermitVerdict)>(
            "answer_approval",
            [
                "realm", "approval", "thumbprint", "decision", "client_id", "event", "binding_message", "challenge",
                "match_number", "source", PermitRequest.argument,
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), decision = columns("decision", String?.self)
            let decidedAt = columns("decided_at", Double?.self)
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "decided": .decided(try row.some(row[decision]), at: try row.some(row[decidedAt]))
                case "number_mismatch": .numberMismatch
                case "already_decided": .alreadyDecided(try row.some(row[decision]))
                case "invalid": .invalid
                case "not_trusted": .notTrusted
                default: .notFound
                }
            }
        }
        let redeem = FunctionCall<(Polled?, PermitVerdict)>(
            "redeem_authentication",
            NewSession.signInArguments + ["id", "expires", SecondFactorProof.argument], effect: .once,
            returns: Polled.columns)
        let event = FunctionCall<Event>(
            "approval_event", ["realm", "client", "event_id", "hint"], effect: .readOnly
        ) { (row) throws(StoreError) in
            Event(
                id: try row("id"), number: try row("event_id"), hint: try row("hint"), event: try row("event"),
                ip: try row("ip"), createdAt: try row("created_at"), updatedAt: try row("updated_at"),
                expiresAt: try row("expires_at"), isNew: try row("is_new"), isApproved: try row("is_approved"),
                isRedeemed: try row("is_redeemed"))
        }
    }
    static let calls = Calls()
}
