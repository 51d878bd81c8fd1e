extension PossessionStore {
    struct Calls: Sendable {
        let start = FunctionCall<(Bool?, PermitVerdict)>(
            "start_possession",
            [
                "realm", "client", "id", "auth_id", "kind", "phone", "prove_id", PossessionDetail.argument, "lifetime",
                PermitRequest.argument,
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", Started.self)
            return columns.limited { (row) throws(StoreError) in try row[outcome] == .started }
        }
        let status = FunctionCall<PossessionFacts?>(
            "possession_status", ["realm", "client", "id"], effect: .readOnly
        ) { columns in
            columns.composite("facts", PossessionFacts.columns)
        }
        let enter = reply("enter_possession", Entered.self, ["realm", ProofUse.argument, "auth_id", "phone"])
        let state = FunctionCall<PossessionState?>("possession_state", ["realm", "id"], effect: .readOnly)
        let open = reply(
            "open_possession", Opened.self,
            ["realm", "id", "key", "public_key", "device_id", "source", "risk", "verified"])
        let send = FunctionCall<(Reply<Sent>?, PermitVerdict)>(
            "send_possession",
            [
                "realm", "id", "key", "channel", "phone", "region", "salt", "keyed", "code_key", "link_hash", "match",
                "risk", "swapped", "template", "app", "locale",
            ] + SealedMessage.arguments + [PermitRequest.argument], effect: .once
        ) { columns in
            let outcome = columns("outcome", Sent.Outcome.self)
            let refusal = columns("refusal", PossessionSendRefusal?.self)
            let facts = columns.composite("facts", PossessionFacts.columns)
            return columns.limited { (row) throws(StoreError) in
                let sent: Sent =
                    switch try row[outcome] {
                    case .sent: .sent
                    case .settled: .settled
                    case .failed: .failed
                    case .refused: .refused(try row.some(row[refusal]))
                    case .limited: throw .malformedResult
                    }
                return Reply(outcome: sent, known: try facts(row))
            }
        }
        let check = reply("check_possession", Checked.self, ["realm", "id", "key", "keyed", "test_keyed"])
        let finish = reply(
            "finish_possession_by_proof", Finished.self, ["realm", ProofUse.argument, "auth_id", "return_hash"])
        let cancel = reply("cancel_possession_by_proof", Cancelled.self, ["realm", ProofUse.argument, "auth_id"])
        let answer = FunctionCall<LinkAnswer>(
            "answer_possession_link", ["realm", "link_hash", "denies", "number", "return_hash"], effect: .once,
            record: { (row) throws(StoreError) in
                LinkAnswer(outcome: try row("outcome"), target: try row("target"), authID: try row("auth_id"))
            })
        let bind = reply("bind_possession", Bound.self, ["realm", "client", "id", "phone"])
        let revoke = FunctionCall<Bool>("revoke_phone_key", ["realm", "client", "device"], effect: .once)
        let passedBy = FunctionCall<String?>("possession_passed_by", ["realm", "auth_id"], effect: .readOnly)
        let redeem = FunctionCall(
            "redeem_possession", NewSession.signInArguments + ["auth_id", "by", SecondFactorProof.argument],
            effect: .once, returns: SignInOutcome.limitedColumns)

        private static func reply<Outcome: ColumnValue>(
            _ function: String, _: Outcome.Type, _ arguments: [Argument]
        ) -> FunctionCall<Reply<Outcome>> {
            FunctionCall(function, arguments, effect: .once) { columns in
                let outcome = columns("outcome", Outcome.self)
                let facts = columns.composite("facts", PossessionFacts.columns)
                return { (row) throws(StoreError) in Reply(outcome: try row[outcome], known: try facts(row)) }
            }
        }
    }
    static let calls = Calls()
}
