extension DeviceKeyStore {
    struct Calls: Sendable {
        let add = FunctionCall<Added>(
            "add_device",
            ["realm", ProofUse.argument, "session", "public_key", "display_name", "push_handle", "source"],
            effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), id = columns("id", UUIDValue?.self)
            let probation = columns("probation_until", Double?.self)
            return { (row) throws(StoreError) in
                switch try row[outcome] {
                case "key_in_use": return .keyInUse
                case "too_many": return .tooMany
                case "signed_out": return .signedOut
                default:
                    guard let id = try row[id] else { throw StoreError.malformedResult }
                    return .added(id, probationUntil: try row[probation])
                }
            }
        }
        let list = FunctionCall<Listed>(
            "list_devices", ["realm", "user", "id"], effect: .readOnly, record: Listed.columns)
        let change = FunctionCall<Listed>(
            "change_own_device", ["realm", "session", "id", "display_name", "push_handle", "clear_push"],
            effect: .idempotent, record: Listed.columns)
        let remove = FunctionCall<Bool>("remove_own_device", ["realm", "session", "id", "source"], effect: .once)
        let call = FunctionCall<(OwnCall?, PermitVerdict)>(
            "call_of_device",
            [
                "realm", ProofUse.argument, PermitRequest.argument, "id", "display_name", "push_handle", "clear_push",
                "remove", "source",
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), id = columns("id", UUIDValue?.self)
            let listed = columns.record(Listed.columns)
            return columns.limited { (row) throws(StoreError) in
                switch try row[outcome] {
                case "unknown": .unknown
                case "foreign": .foreign
                default: .done(try row[id] == nil ? nil : try listed(row))
                }
            }
        }
        let adopt = FunctionCall<Adopted>(
            "adopt_device",
            [
                "realm", "session", "approver", "is_valid", "offer", "expires", "is_right", "client", "thumbprint",
                "public_key", "display_name", "source",
            ], effect: .once
        ) { columns in
            let outcome = columns("outcome", String.self), listed = columns.record(Listed.columns)
            return { (row) throws(StoreError) in
                switch try row[outcome] {
                case "signed_out": .signedOut
                case "not_trusted": .notTrusted
                case "invalid": .invalid
                case "key_in_use": .keyInUse
                case "too_many": .tooMany
                default: .adopted(try listed(row))
                }
            }
        }
        let redeem = FunctionCall(
            "redeem_device", NewSession.signInArguments + ["nonce", SecondFactorProof.argument], effect: .once,
            returns: SignInOutcome.limitedColumns)
    }
    static let calls = Calls()
}
