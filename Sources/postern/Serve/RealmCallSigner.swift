import Delivery
import Grants
import Persistence

/// Signs the sender's calls with the keys of the server that runs beside it.
struct RealmCallSigner: CallSigner {
    let tokens: HookTokens

    func token(realm: UUIDValue, url: String, message: UUIDValue, body: [UInt8]) async throws -> String {
        try await tokens.token(realm: realm, url: url, id: message, body: body)
    }
}
