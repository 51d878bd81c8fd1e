extension PasskeyStore {
    struct Calls: Sendable {
        let beginAssertion = FunctionCall<(AssertionStart?, PermitVerdict)>(
            "begin_assertion",
            [
                .realmWithProof, "client", "permission", "app", "ceremony", "expires", "rp_id", "credential_id",
            ] + PermitRequest.arguments,
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
        let redeem = FunctionCall(
            "redeem_passkey", named: nil, assertion + NewSession.arguments, effect: .once,
            returns: SignInOutcome.columns)
        let redeemOnPage = FunctionCall(
            "redeem_passkey", named: "redeem_passkey_on_page", assertion + NewSession.pageArguments, effect: .once,
            returns: SignInOutcome.columnsOnPageWithoutSecondFactor)
        private static let assertion: [Argument] = [
            "realm", "client", "permission", "passkey", "sign_count", "backup_state",
        ]
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
            ] + SealedMail.arguments, effect: .once)
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
            "rename_passkey", ["realm", "user", "id", "display_name"], effect: .idempotent)
        let delete = FunctionCall<Bool>(
            "delete_passkey", ["realm", "session", "user", "id", "source"] + SealedMail.arguments, effect: .once)
    }
    static let calls = Calls()
}
