import Encoding
import Persistence

/// The object of one event in a token: what CAEP 1.0, RISC 1.0 or our own types say about it.
///
/// Addresses appear in `identifier-changed` only. Members that a specification does not know are `client_id`, `ext_id`
/// outside `session-established`, `change`, `identifier_type` and `test_identity`, and of `credential_type` the values
/// `recovery-code`, `identifier` and `device`.
enum SecurityEvent {
    /// The members for an event. - Parameter type: the last part of the type's URI decides.
    static func object(of due: WebhookStore.Due) -> [UInt8] {
        let detail = AuditDetail(due.detail)
        var object = JSONWriter()
        switch due.type.split(separator: "/").last {
        case "session-established":
            isCAEP(due, &object)
            let amr = detail.list("amr")
            object.member("amr", amr)
            object.member("acr", detail.text("acr") ?? AuthenticationContext(amr: amr).rawValue)
            object.member("ext_id", due.session?.description)
        case "session-revoked":
            isCAEP(due, &object)
            let isNamed = ["session_revoked", "user_signed_out"].contains(due.event)
            reason(isNamed ? detail.text("reason") ?? due.event : due.event, &object)
            // With `ext_id` one session ended; without it all sessions of the user, or all at the client `client_id`.
            object.member("ext_id", due.session.flatMap { endsAll(due) ? nil : $0.description })
        case "credential-change":
            isCAEP(due, &object)
            object.member("credential_type", credential(due, detail))
            // The undo of a removal gives something back.
            let isNew = ["passkey_added", "totp_enrolled"].contains(due.event) || detail.text("kind") == "removal"
            object.member("change_type", isNew ? "create" : "delete")
            reason(due.event, &object)
        case "identifier-changed":
            object.member("change", due.event.split(separator: "_").last.map(String.init))
            object.member("identifier_type", detail.text("kind") ?? (due.event == "address_changed" ? "email" : nil))
            object.member("new-value", due.address)
        case "account-disabled", "account-enabled", "account-purged":
            reason(due.event, &object)
        default:
            if !detail.list("codes").isEmpty { object.member("codes", detail.list("codes")) }
            object.member("correlation_id", detail.text("correlation_id"))
        }
        object.member("client_id", endsAll(due) ? nil : due.clientID)
        if due.isTestIdentity { object.member("test_identity", true) }
        return object.finish()
    }

    /// What every CAEP event may say (CAEP 1.0 §2).
    private static func isCAEP(_ due: WebhookStore.Due, _ object: inout JSONWriter) {
        object.member("event_timestamp", Int(due.at))
        let isAdministrator = due.source?.hasPrefix("sql:") ?? false
        let isPolicy = ["refresh_token_reuse", "authorization_code_reused"].contains(due.event)
        object.member("initiating_entity", isAdministrator ? "admin" : isPolicy ? "policy" : "user")
    }

    private static func reason(_ code: String, _ object: inout JSONWriter) {
        var text = JSONWriter()
        text.member("en", code)
        object.member("reason_admin", json: text.finish())
    }

    /// The session and the client of such a row are those that asked for the end of all.
    private static func endsAll(_ due: WebhookStore.Due) -> Bool { due.event == "user_signed_out" }

    private static func credential(_ due: WebhookStore.Due, _ detail: AuditDetail) -> String {
        switch due.event {
        case "passkey_added", "passkey_deleted": return passkey(detail)
        case "recovery_codes_used_up": return "recovery-code"
        case "factor_undone":
            switch detail.text("kind") {
            case "passkey": return passkey(detail)
            case "totp": return "app"
            case "device", "phone-key": return "device"
            default: return "identifier"
            }
        default: return "app"
        }
    }

    /// A key that is plugged in or held near, or one of the device.
    private static func passkey(_ detail: AuditDetail) -> String {
        let transports = detail.list("transports")
        let roams = transports.contains { ["usb", "nfc", "ble", "smart-card"].contains($0) }
        return roams && !transports.contains("internal") ? "fido2-roaming" : "fido2-platform"
    }
}
