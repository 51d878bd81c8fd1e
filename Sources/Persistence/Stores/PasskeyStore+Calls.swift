extension PasskeyStore {
    struct Calls: Sendable {
        let beginAssertion = FunctionCall<(AssertionStart?, PermitVerdict)>(
            "begin_assertion",
            [
                Caller.argument, PermitRequest.argument, "ceremony", "expires", "session", "rp_id", "credential_id",
            ],
            effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self)
            let passkey = columns("passkey", UUIDValue?.self)
            let credential = columns.record { (row) throws(StoreError) in
                StoredCredential(
                    passkey: try row("passkey"), userHandle: try row("user_handle"), publicKey: try row("public_key"),
                    signCount: try row("sign_count"), backupEligible: try row("backup_eligible"))
            }
            return columns.limited { (row) throws(StoreError) in
                guard try row[outcome] == "spent" else { return .refused }
                return .spent(try row[passkey] == nil ? nil : try credential(row))
            }
        }
        let redeem = redeemCall("redeem_passkey", NewSession.argument)
        let redeemOnPage = redeemCall("redeem_passkey_on_page", NewSession.pageArgument)

        private static func redeemCall(_ name: String, _ session: Argument) -> FunctionCall<SignInOutcome> {
            FunctionCall(
                "redeem_passkey", named: name,
                [Caller.argument, session, "passkey", "sign_count", "backup_state"], effect: .once,
                returns: SignInOutcome.columns)
        }

        let enrolmentOptions = FunctionCall<EnrolmentOptions>(
            "enrolment_options", ["realm", "user", "rp_id"], effect: .readOnly
        ) { (row) throws(StoreError) in
            EnrolmentOptions(
                userHandle: try row("user_handle"), email: try row("email"), displayName: try row("display_name"),
                credentialIDs: try row("credential_ids"))
        }
        let spend = FunctionCall<Bool>("spend_ceremony", ["realm", "ceremony", "expires"], effect: .once)
        let add = FunctionCall<UUIDValue?>(
            "add_passkey",
            [
                "realm", "session", "rp_id", "credential_id", "public_key", "sign_count", "aaguid", "backup_eligible",
                "backup_state", "uv_initialized", "transports", "format", "display_name", "source",
            ] + SealedMessage.arguments, effect: .once)
        let list = FunctionCall<Listed>(
            "list_passkeys", ["realm", "user", "id"], effect: .readOnly
        ) { (row) throws(StoreError) in
            Listed(
                id: try row("id"), rpID: try row("rp_id"), aaguid: try row("aaguid"),
                backupEligible: try row("backup_eligible"), backupState: try row("backup_state"),
                transports: try row("transports"), displayName: try row("display_name"),
                createdAt: try row("created_at"), lastUsedAt: try row("last_used_at"))
        }
        let rename = FunctionCall<Bool>(
            "rename_passkey", ["realm", "session", "id", "display_name"], effect: .idempotent)
        let delete = FunctionCall<Bool>(
            "delete_passkey", ["realm", "session", "id", "source"] + SealedMessage.arguments, effect: .once)
    }
    static let calls = Calls()
}
