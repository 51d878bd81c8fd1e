import Foundation
import Testing

@testable import PosternClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

let mail = Address.email("mike@mail.example")

extension FakeServer.Fate {
    /// What a request for a code or a link is answered with.
    static func asked(_ more: [String: JSONValue] = [:]) -> FakeServer.Fate {
        .answer(
            200,
            .object(
                [
                    "AuthSession": "handle-secret", "ExpiresIn": 600, "ResendAfter": 60, "Interval": 5,
                    "MatchNumber": "42",
                ]
                .merging(more) { $1 }))
    }

    static func refusal(_ error: String, _ text: String? = nil, status: Int = 400) -> FakeServer.Fate {
        var members: [String: JSONValue] = ["error": .string(error)]
        members["error_description"] = text.map(JSONValue.string)
        return .answer(status, .object(members))
    }
}

extension World {
    /// The next token request opens a session of this family.
    func opens(_ family: String = "R", user: String = "mike", nonce: String? = nil, isBearer: Bool = false) async {
        await server.add(family, FakeServer.Family(user: user, isBearer: isBearer))
        await server.next(
            .answer(200, server.tokens(family, scope: "openid offline_access", nonce: nonce)), at: "/connect/token")
    }

    /// A code that was asked for.
    func code(_ client: PosternClient) async throws -> CodeRequest {
        await server.next(.asked(), at: "/api/account/native/otp/request")
        return try await client.requestCode(to: mail)
    }

    /// A link that was asked for.
    func link(_ client: PosternClient) async throws -> PendingSignIn {
        await server.next(.asked(), at: "/api/account/magic-link/request")
        return try await client.requestLink(to: mail)
    }

    /// The requests to a path.
    func requests(_ path: String) async -> [FakeServer.Seen] { await server.seen.filter { $0.path == path } }
}

/// A passkey dialog that gives what a test says, in order.
actor Person: PasskeyDialog {
    private(set) var asked: [JSONValue] = []
    private var answers: [Data?]

    init(_ answers: Data?...) { self.answers = answers }

    func create(_ options: Data) async throws -> Data { try answer(options) }
    func get(_ options: Data, style: PasskeyStyle) async throws -> Data { try answer(options) }

    private func answer(_ options: Data) throws -> Data {
        asked.append(JSONValue(options) ?? .null)
        guard !answers.isEmpty, let answer = answers.removeFirst() else { throw DialogCancelled() }
        return answer
    }
}

/// A browser whose person gets through, to the redirect URI with what a test makes of the request.
struct Passer: PageBrowser {
    var members: @Sendable (_ request: [String: String]) -> [(String, String)] = {
        [("code", "code-secret"), ("state", $0["state"] ?? ""), ("iss", FakeServer.origin)]
    }

    func redirect(for registered: URL) async throws -> URL { registered }

    func open(_ page: URL, until redirect: URL) async throws -> URL {
        let items = URLComponents(url: page, resolvingAgainstBaseURL: false)?.queryItems ?? []
        let request = items.reduce(into: [:]) { $0[$1.name] = $1.value }
        guard let url = URL(string: "\(redirect.absoluteString)?\(Form.encode(members(request)))") else {
            throw DialogCancelled()
        }
        return url
    }
}
