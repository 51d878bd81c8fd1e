import Foundation
import Testing

@testable import PosternClient

@Suite("Signing in")
struct SignInTests {
    let world = World()

    @Test func `a code whose answer was lost is sent again, with a proof of its own each time`() async throws {
        let client = try world.client()
        let request = try await world.code(client)
        await world.server.next(.cut, .cut, at: "/connect/token")
        await world.opens()
        #expect(try await client.signIn(code: "123456", for: request).id == "mike")
        let sent = await world.requests("/connect/token")
        #expect(sent.count == 3)
        #expect(Set(sent.map(\.form)).count == 1)
        #expect(Set(sent.compactMap { $0.proof?["jti"]?.string }).count == 3)
        #expect(try await client.pending.isEmpty)
    }

    @Test func `a code without an answer for 45 seconds stays pending`() async throws {
        let client = try world.client()
        let request = try await world.code(client)
        for _ in 0..<20 { await world.server.next(.cut, at: "/connect/token") }
        let began = world.time.uptime
        await expect(.unavailable(retryAfter: nil)) { try await client.signIn(code: "123456", for: request) }
        #expect((36...45).contains(world.time.uptime - began))
        #expect(try await client.pending == [.code(request)])
        await world.server.recovers()
        let later = try world.client(client.configuration.store)
        await expect(.wrongCode) { try await later.signIn(code: "123456", for: request) }
    }

    @Test func `a request is a value that an app may keep, and holds no secret`() async throws {
        let client = try world.client()
        let request = try await world.code(client)
        let kept = try JSONEncoder().encode(request)
        #expect(!String(decoding: kept, as: UTF8.self).contains("handle-secret"))
        #expect(try JSONDecoder().decode(CodeRequest.self, from: kept) == request)
    }

    @Test func `pending lists what seems alive, and the server decides about the rest`() async throws {
        let client = try world.client()
        let request = try await world.code(client)
        world.time.pass(601)
        #expect(try await client.pending.isEmpty)
        await world.opens()
        #expect(try await client.signIn(code: "123456", for: request).id == "mike")
    }

    @Test func `a name that is needed is named`() async throws {
        let client = try world.client()
        await world.server.next(.refusal("Lastname is required."))
        await expect(.namesNeeded(["Lastname"])) { try await client.requestCode(to: mail) }
    }

    @Test(arguments: [
        JSONValue.null, [:], ["AuthSession": "x"], ["AuthSession": "x", "ExpiresIn": -1, "ResendAfter": 60],
        ["AuthSession": "x", "ExpiresIn": 1_000_000_000_000, "ResendAfter": 60], ["AuthSession": 1, "ExpiresIn": 600],
        [[]],
    ])
    func `an answer that is not what the status promises decides nothing`(answer: JSONValue) async throws {
        let client = try world.client()
        await world.server.next(.answer(200, answer), .answer(200, answer), .answer(200, answer))
        await expect(.unavailable(retryAfter: nil)) { try await client.requestCode(to: mail) }
        await expect(.unavailable(retryAfter: nil)) { try await client.appInfo() }
        await expect(.unavailable(retryAfter: nil)) { try await client.requestDeviceSignIn() }
        #expect(try await client.pending.isEmpty)
    }

    @Test func `what an app may know is read, and a newer server's words count as off`() async throws {
        let client = try world.client()
        await world.server.next(
            .answer(
                200,
                [
                    "DisplayName": "Acme", "NativeGrants": true, "Registration": "ByInvitation", "RpId": .null,
                    "RegistrationFields": ["Firstname": "Required", "Lastname": "Optional", "Shoe": "Required"],
                ]))
        let info = try await client.appInfo()
        #expect(info.registration == .off && info.rpID == nil)
        #expect(info.firstName == .required && info.lastName == .optional)
    }

    @Test func `a request that was given up opens no session, and what the server opened is revoked`() async throws {
        let client = try await world.signedIn(family: "A", user: "anna")
        let request = try await world.code(client)
        let (reached, until) = (Gate(), Gate())
        await world.server.add("R", FakeServer.Family(user: "mike"))
        await world.server.next(
            .heldAnswer(await world.server.tokens("R", scope: "openid offline_access"), reached: reached, until: until),
            at: "/connect/token")
        let signingIn = Task { try await client.signIn(code: "123456", for: request) }
        await reached.pass()
        try await client.forget(.code(request))
        await until.open()
        await expect(.cancelled) { try await signingIn.value }
        await client.revoking?.value
        #expect(await world.server.revoked == ["R.1"])
        guard case .signedIn(let user) = await client.state else {
            Issue.record("signed out")
            return
        }
        #expect(user.id == "anna")
    }

    @Test func `two processes that send the same code share its session`() async throws {
        let store = MemoryStore()
        let (app, widget) = (try world.client(store), try world.client(store))
        let request = try await world.code(app)
        let (reached, until) = (Gate(), Gate())
        await world.server.add("R", FakeServer.Family(user: "mike"))
        let answer = await world.server.tokens("R", scope: "openid offline_access")
        await world.server.next(
            .heldAnswer(answer, reached: reached, until: until), .answer(200, answer), at: "/connect/token")
        let first = Task { try await app.signIn(code: "123456", for: request) }
        await reached.pass()
        #expect(try await widget.signIn(code: "123456", for: request).id == "mike")
        await until.open()
        #expect(try await first.value.id == "mike")
        #expect(await world.server.revoked.isEmpty)
        #expect(try await app.document().toRevoke.isEmpty)
    }

    @Test func `a message that was asked for again does not bring a forgotten request back`() async throws {
        let client = try world.client()
        let request = try await world.code(client)
        let (reached, until) = (Gate(), Gate())
        await world.server.next(
            .heldAnswer(["AuthSession": "handle", "ExpiresIn": 600, "ResendAfter": 60], reached: reached, until: until))
        let asking = Task { try await client.resend(request) }
        await reached.pass()
        try await client.forget(.code(request))
        await until.open()
        await expect(.cancelled) { try await asking.value }
        #expect(try await client.pending.isEmpty)
    }

    // MARK: Passkeys

    @Test func `after a move of domains the passkey of the former one is asked for second`() async throws {
        let client = try world.client()
        for (id, domains) in [("one", JSONValue.array(["new.example", "old.example"])), ("two", .null)] {
            await world.server.next(
                .answer(200, ["ceremonyId": .string(id), "options": ["challenge": .string(id)], "rpIds": domains]),
                at: "/connect/passkey/begin")
        }
        await world.opens()
        let person = Person(nil, Data(#"{"id":"credential"}"#.utf8))
        #expect(try await client.signIn(with: person).id == "mike")
        #expect(await person.asked == [["challenge": "one"], ["challenge": "two"]])
        #expect(await world.requests("/connect/passkey/begin").map { $0.form["rp_id"] } == [nil, "old.example"])
        let sent = await world.requests("/connect/token")[0].form
        #expect(sent["ceremony_id"] == "two" && sent["assertion"] == #"{"id":"credential"}"#)
    }

    @Test(arguments: [KeyPolicy.software, .none])
    func `a lost answer to a passkey is asked for again by who has the key`(key: KeyPolicy) async throws {
        let client = try world.client(key: key)
        await world.server.next(
            .answer(200, ["ceremonyId": "one", "options": [:]]), .cut, at: nil)
        await world.opens(isBearer: key == .none)
        let person = Person(Data("{}".utf8))
        if key == .none {
            await expect(.unavailable(retryAfter: nil)) { try await client.signIn(with: person) }
            #expect(await world.server.count("/connect/token") == 1)
        } else {
            #expect(try await client.signIn(with: person).id == "mike")
            #expect(await world.server.count("/connect/token") == 2)
        }
    }

    @Test func `options and credentials of a new passkey pass unchanged`() async throws {
        let client = try await world.signedIn(scopes: ["openid", "offline_access"])
        let options: JSONValue = [
            "rp": ["id": "x"], "timeout": 300_000, "pubKeyCredParams": [["alg": -7]], "odd": .null,
        ]
        await world.server.next(
            .answer(200, ["ceremonyId": "one", "options": options]), at: "/connect/passkey/enroll/begin")
        await world.server.next(.cut, .answer(200, ["Id": "passkey"]), at: "/connect/passkey/enroll")
        let person = Person(Data(#"{"id":"a/b","n":1.5,"none":null}"#.utf8))
        #expect(try await client.account.addPasskey(with: person, named: "Phone") == "passkey")
        #expect(await person.asked == [options])
        let sent = await world.requests("/connect/passkey/enroll")
        #expect(sent.count == 2)
        #expect(sent[1].json?["attestation"] == ["id": "a/b", "n": .number(1.5), "none": .null])
    }

    // MARK: Trusted device, provider

    @Test func `a trusted device signs in with a nonce of its own, once`() async throws {
        let client = try world.client()
        let challenge = FakeServer.Fate.answer(400, ["error": "use_dpop_nonce"], ["DPoP-Nonce": "one"])
        await world.server.next(challenge, .cut, challenge, at: "/connect/token")
        await expect(.unavailable(retryAfter: nil)) { try await client.signInAsTrustedDevice() }
        await world.opens()
        _ = try await client.signInAsTrustedDevice()
        // The nonce of the lost request may be spent.
        let nonces = await world.requests("/connect/token").map { $0.proof?["nonce"]?.string }
        #expect(nonces == [nil, "one", nil, "one"])
    }

    @Test func `an identity that needs a proof of the address is added after another sign-in`() async throws {
        let client = try world.client(scopes: ["openid", "offline_access"])
        await world.server.next(
            .answer(200, ["auth_session": "provider-secret", "nonce": "nonce", "expires_in": 600]),
            .refusal("address_proof_required"),
            .answer(400, ["error": "registration_incomplete", "fields": ["Firstname"]]))
        let request = try await client.beginProvider("apple")
        #expect(request.nonce == "nonce" && request.provider == "apple")
        let proof = ProviderProof(identityToken: "token", authorizationCode: "code", names: Names(first: "Ada"))
        await expect(.addressProofNeeded) { try await client.signIn(proof, for: request) }
        await expect(.namesNeeded(["Firstname"])) { try await client.signIn(proof, for: request) }
        let sent = await world.requests("/connect/token")[0].form
        #expect(sent["subject_token"] == "token" && sent["auth_session"] == "provider-secret")
        #expect(sent["authorization_code"] == "code" && sent["first_name"] == "Ada")
        try await world.signIn(client, family: "R", user: "mike", scopes: ["openid", "offline_access"])
        await world.server.next(
            .answer(200, ["Id": "identity", "Provider": "apple", "CreatedAt": "2026-11-20T09:12:44.903Z"]),
            at: "/connect/identities")
        #expect(try await client.account.add(proof, for: request).id == "identity")
        #expect(await world.requests("/connect/identities")[0].json?["AuthSession"] == "provider-secret")
        await expect(.misuse("the request is over: begin with beginProvider")) {
            try await client.account.add(proof, for: request)
        }
    }

    @Test func `a lost answer to an identity is asked for again`() async throws {
        let client = try world.client()
        await world.server.next(.answer(200, ["auth_session": "provider", "nonce": "nonce", "expires_in": 600]))
        let request = try await client.beginProvider("apple")
        await world.server.next(.cut)
        await world.opens()
        #expect(try await client.signIn(ProviderProof(identityToken: "token"), for: request).id == "mike")
        #expect(await world.server.count("/connect/token") == 2)
    }
}
