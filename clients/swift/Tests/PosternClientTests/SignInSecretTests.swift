import Foundation
import Testing

@testable import PosternClient

@Suite("Secrets of sign-ins")
struct SignInSecretTests {
    let world = World()

    @Test func `no value of a sign-in, the account, devices or possession shows a secret or an address`() async throws {
        let client = try world.client(scopes: ["openid", "offline_access"])
        let request = try await world.code(client)
        let pending = try await world.link(client)
        try await world.signIn(client, family: "R", user: "mike", scopes: ["openid", "offline_access"])
        await world.server.next(
            .answer(
                200,
                [
                    "Sub": "u", "Email": "mike@mail.example", "Phone": "+436641234567", "FirstName": "Michaela",
                    "CreatedAt": "2026-11-20T09:12:44.903Z",
                ]), at: "/connect/account")
        let time: JSONValue = "2026-11-20T09:12:44Z"
        let approval: JSONValue = [
            "Id": "a", "Event": "LOGIN", "ClientId": "app", "Challenge": "secret-challenge", "CreatedAt": time,
            "ExpiresAt": time, "Source": "192.0.2.77",
        ]
        let values: [Any?] = [
            client, client.account, client.device, request, pending, Pending.code(request), mail,
            Address.phone("+436641234567"), Names(first: "Michaela", last: "secret-last"),
            SecondFactor.totp("secret-totp"),
            SecondFactor.recoveryCode("secret-recovery"), try await client.account.load(),
            ProviderProof(identityToken: "secret-identity", authorizationCode: "secret-code"),
            ProviderRequest(id: "i", provider: "p", nonce: "secret-nonce", expiresAt: world.time.now),
            StepUpMethod.code("secret-step", for: request, .totp("secret-totp")), LoopbackBrowser { _ in },
            Account.TOTPEnrolment([
                "secret": "secret-seed", "uri": "otpauth://secret-seed", "ceremonyId": "secret-ceremony",
            ]),
            Account.Identifier(["Id": "i", "Kind": "email", "Value": "mike@mail.example"]),
            Account.Identity(["Id": "i", "Provider": "p", "Email": "mike@mail.example", "CreatedAt": time]),
            Account.DeviceRequest(
                ["ClientId": "c", "RequestedAt": time, "ExpiresIn": 1], userCode: "secret-user", at: world.time.now),
            TrustedDevice.Inbox(["Approvals": [approval]]), TrustedDevice.Approval(approval),
            TrustedDevice.Decision.approve(number: "secret-number"),
            TrustedDevice.Offer(
                ["QrText": "secret-picture", "CheckCode": "secret-digits", "ExpiresIn": 1], at: world.time.now),
            PossessionCheck.Status(["authId": "i", "state": "open"]),
            PossessionCheck(
                client, authToken: "secret-token",
                try #require(PossessionCheck.Status(["authId": "i", "state": "open"])),
                until: world.time.now),
        ]
        let texts = try values.map { try shown(#require($0)) } + world.events.all.map(shown)
        for secret in ["secret", "mike@mail.example", "436641234567", "Michaela", "192.0.2.77", "R.1"] {
            for form in [secret, Data(secret.utf8).base64EncodedString(), Form.escape(secret)] {
                #expect(!texts.contains { $0.contains(form) }, "\(form)")
            }
        }
        #expect(!texts.contains { $0.contains("matchNumber") || $0.contains("userCode") })
    }

    @Test func `the code of a device is not in the log`() async throws {
        let client = try await world.signedIn(scopes: ["openid", "offline_access"])
        _ = try? await client.account.deviceRequest("BCDF-GHJK")
        #expect(await world.server.count("/connect/device/BCDF-GHJK") == 1)
        #expect(!world.events.all.contains { shown($0).contains("BCDF") })
    }

    private func shown(_ value: Any) -> String {
        var text = "\(value) \(String(reflecting: value))"
        dump(value, to: &text)
        return text
    }
}
