import Foundation
import Testing

@testable import PosternClient

@Suite("Secrets")
struct SecretTests {
    let world = World()

    @Test func `no description, mirror or log has a token, a key, an address or a query`() async throws {
        let store = MemoryStore()
        let client = try await world.signedIn(store)
        world.time.pass(900)
        await world.server.next(.answer(503), .answer(400, ["error": "use_dpop_nonce"], ["DPoP-Nonce": "nonce-secret"]))
        let token = try await client.accessToken()
        _ = try await client.accountCall("DELETE", "/connect/sessions?current=query-secret")
        await world.server.next(.answer(400, ["error": "invalid_request", "error_description": "Wrong."]))
        var texts: [String] = []
        do { _ = try await client.post("/anything", ["Email": "mike@mail.example"]) } catch {
            texts.append(shown(error))
        }
        let document = try await client.document()
        let state = await client.state
        texts += [shown(client), shown(token), shown(state), shown(store), shown(client.configuration)]
        if case .signedIn(let user) = state { texts += [shown(user), shown(user.claims)] }
        texts += world.events.all.map(shown)
        let secrets = [
            "mike@mail.example", "access-", "R.1", "R.2", document.hint, document.key?.string("value"), "nonce-secret",
            "query-secret",
        ]
        for secret in secrets.compactMap({ $0 }) {
            for form in [secret, Data(secret.utf8).base64EncodedString(), Form.escape(secret)] {
                #expect(!texts.contains { $0.contains(form) }, "\(form)")
            }
        }
        #expect(world.events.count("request") > 3)
    }

    private func shown(_ value: Any) -> String {
        var text = "\(value) \(String(reflecting: value))"
        dump(value, to: &text)
        return text
    }
}
