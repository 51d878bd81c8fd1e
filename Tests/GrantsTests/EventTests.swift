import Foundation
import Testing

@testable import Grants
@testable import Persistence

@Suite("Events")
struct EventTests {
    private func due(
        _ event: String, _ type: String, detail: String = "{}", session: UUIDValue? = nil,
        source: String? = "192.0.2.1",
        user: UUIDValue? = nil, client: String? = nil
    ) -> WebhookStore.Due {
        WebhookStore.Due(
            realm: .random(), realmSlug: "acme", webhook: .random(), name: "crm", url: "https://crm.example",
            audience: "crm", secretName: nil, subject: "s", lease: .random(), id: 7, event: event, type: type,
            tokenID: "7.1",
            transaction: "5.1", at: 1_000.5, user: user, session: session, clientID: client, source: source,
            detail: detail, address: nil, isTestIdentity: false, attempts: 0)
    }

    private func object(_ due: WebhookStore.Due) throws -> [String: Any] {
        let data = Data(SecurityEvent.object(of: due))
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    @Test(arguments: [
        (#"{"amr":["otp"]}"#, "urn:postern:acr:1"), (#"{"amr":["otp","mfa"]}"#, "urn:postern:acr:2"),
        (#"{"amr":["hwk","user"]}"#, "phr"), (#"{"amr":["otp","mfa"],"acr":"urn:postern:acr:1"}"#, "urn:postern:acr:1"),
        (#"{"page":"a.example"}"#, "urn:postern:acr:1"), ("no JSON", "urn:postern:acr:1"),
    ])
    func `a sign-in has the level that was recorded, else that of amr`(_ detail: String, _ acr: String) throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/session-established"
        #expect(try object(due("sign_in", type, detail: detail))["acr"] as? String == acr)
    }

    @Test func `a revoked session names its session, and the end of all names none`() throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
        let session = UUIDValue.random()
        let one = try object(due("session_revoked", type, detail: #"{"reason":"administrator"}"#, session: session))
        #expect(one["ext_id"] as? String == session.description)
        #expect(one["reason_admin"] as? [String: String] == ["en": "administrator"])
        let all = try object(due("user_signed_out", type, session: session, source: "sql:root"))
        #expect(all["ext_id"] == nil)
        #expect(all["initiating_entity"] as? String == "admin")
    }

    @Test func `the end of all names no client, for that would narrow it`() throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
        let all = try object(due("user_signed_out", type, session: .random(), client: "app"))
        #expect(all["client_id"] == nil && all["ext_id"] == nil)
        #expect(try object(due("consent_revoked", type, client: "app"))["client_id"] as? String == "app")
        #expect(try object(due("session_revoked", type, session: .random(), client: "app"))["client_id"] != nil)
    }

    @Test(arguments: [
        ("{}", "user_signed_out"), (#"{"sessions":2,"kept_current":false}"#, "user_signed_out"),
        (#"{"sessions":2,"reason":"address_changed"}"#, "address_changed"),
        (#"{"sessions":0,"reason":"factor_undone"}"#, "factor_undone"),
    ])
    func `the end of all says why`(_ detail: String, _ reason: String) throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
        #expect(
            try object(due("user_signed_out", type, detail: detail))["reason_admin"] as? [String: String]
                == ["en": reason])
    }

    @Test(arguments: [
        ("passkey_added", #"{"transports":["usb","nfc"]}"#, "fido2-roaming", "create"),
        ("passkey_added", #"{"transports":["internal","hybrid"]}"#, "fido2-platform", "create"),
        ("passkey_added", #"{"transports":["usb","internal"]}"#, "fido2-platform", "create"),
        ("passkey_deleted", #"{"transports":[]}"#, "fido2-platform", "delete"),
        ("totp_enrolled", "{}", "app", "create"), ("totp_removed", "{}", "app", "delete"),
        ("recovery_codes_used_up", "{}", "recovery-code", "delete"),
        ("factor_undone", #"{"kind":"totp"}"#, "app", "delete"),
        ("factor_undone", #"{"kind":"identifier"}"#, "identifier", "delete"),
        ("factor_undone", #"{"kind":"device"}"#, "device", "delete"),
        ("factor_undone", #"{"kind":"passkey","transports":["usb","nfc"]}"#, "fido2-roaming", "delete"),
        ("factor_undone", #"{"kind":"passkey","transports":["internal"]}"#, "fido2-platform", "delete"),
    ])
    func `a factor has its type and what happened`(
        _ event: String, _ detail: String, _ credential: String, _ change: String
    ) throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/credential-change"
        let object = try object(due(event, type, detail: detail))
        #expect(object["credential_type"] as? String == credential)
        #expect(object["change_type"] as? String == change)
    }

    @Test func `there is neither sub nor exp, and one event without a user has an opaque subject`() throws {
        let claims = EventTokens.claims(
            of: due("code_lockout", "urn:postern:event:code_lockout"), issuer: "https://a.example", now: 2_000)
        let json = try #require(try JSONSerialization.jsonObject(with: Data(claims)) as? [String: Any])
        #expect(Set(json.keys) == ["iss", "aud", "iat", "toe", "jti", "txn", "sub_id", "events"])
        #expect(json["sub_id"] as? [String: String] == ["format": "opaque", "id": "s"])
        #expect(json["toe"] as? Int == 1_000 && json["iat"] as? Int == 2_000)
        #expect(json["jti"] as? String == "7.1" && json["txn"] as? String == "5.1" && json["aud"] as? String == "crm")
        #expect((json["events"] as? [String: Any])?.keys.first == "urn:postern:event:code_lockout")
    }

    @Test func `a user is named together with the issuer`() throws {
        let user = UUIDValue.random()
        let claims = EventTokens.claims(
            of: due(
                "user_disabled", "https://schemas.openid.net/secevent/risc/event-type/account-disabled", user: user),
            issuer: "https://a.example", now: 2_000)
        let json = try #require(try JSONSerialization.jsonObject(with: Data(claims)) as? [String: Any])
        #expect(
            json["sub_id"] as? [String: String]
                == ["format": "iss_sub", "iss": "https://a.example", "sub": user.description])
    }

    @Test(arguments: ["refresh_token_reuse", "authorization_code_reused"])
    func `what the server ends by its own rules was initiated by policy`(_ event: String) throws {
        let type = "https://schemas.openid.net/secevent/caep/event-type/session-revoked"
        #expect(try object(due(event, type))["initiating_entity"] as? String == "policy")
        #expect(try object(due("signed_out", type))["initiating_entity"] as? String == "user")
    }

    @Test(arguments: [
        (200, "", WebhookStore.Failure?.none), (202, "", nil), (204, "", nil),
        (400, #"{"err":"invalid_key"}"#, .refused("invalid_key")),
        (400, #"{"err":"eyJhbGciOiJ\n"}"#, .refused("other")), (400, #"{"err":""}"#, .refused("other")),
        (400, "{\"err\":\"\(String(repeating: "a", count: 65))\"}", .refused("other")),
        (500, #"{"err":"invalid_key"}"#, .failed("HTTP 500", retryAfter: 1)),
        (400, "<html>", .failed("HTTP 400", retryAfter: 1)), (400, #"{"err":7}"#, .failed("HTTP 400", retryAfter: 1)),
        (301, "", .failed("HTTP 301", retryAfter: 1)), (401, "", .failed("HTTP 401", retryAfter: 1)),
        (201, "", .failed("HTTP 201", retryAfter: 1)),
    ])
    func `an answer decides what is recorded`(_ status: Int, _ body: String, _ outcome: WebhookStore.Failure?) {
        #expect(
            WebhookAnswer.answered(status: status, body: Array(body.utf8), retryAfter: nil).failure(attempt: 1)
                == outcome)
    }

    @Test func `pauses double up to five minutes, and a receiver may ask for an hour`() {
        #expect((1...12).map(WebhookAnswer.pause) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300])
        #expect(WebhookAnswer.pause(afterAttempt: .max) == 300 && WebhookAnswer.pause(afterAttempt: .min) == 1)
        let asked = WebhookAnswer.answered(status: 503, body: [], retryAfter: .seconds(86_400))
        #expect(asked.failure(attempt: 1) == .failed("HTTP 503", retryAfter: 3600))
        #expect(WebhookAnswer.failed("timeout").failure(attempt: 3) == .failed("timeout", retryAfter: 4))
    }
}
