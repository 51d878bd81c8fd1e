import Crypto
import Encoding
import Foundation
import Persistence

/// An authorization request of an app, with what the app remembers of it.
struct HostedRequest {
    let verifier = Base64.urlEncode(randomBytes(32))
    private let state = Base64.urlEncode(randomBytes(16))
    private let client: String
    private let scope: String
    let redirectURI: String

    init(client: String, scope: String, redirectURI: String) {
        self.client = client
        self.scope = scope
        self.redirectURI = redirectURI
    }

    /// Path and query of the authorization endpoint.
    var path: String {
        "/connect/authorize?"
            + HeadlessApp.encode([
                ("client_id", client), ("redirect_uri", redirectURI), ("response_type", "code"), ("scope", scope),
                ("state", state), ("code_challenge", Base64.urlEncode(Array(SHA256.hash(data: Array(verifier.utf8))))),
                ("code_challenge_method", "S256"),
            ])
    }

    /// The members in the query of a target.
    static func members(of target: String) -> [String: String] {
        let items = URLComponents(string: target)?.queryItems ?? []
        return Dictionary(items.map { ($0.name, $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
    }

    /// The code of an answer. - Throws: ``CommandFailure`` for an error, and for an answer to another request.
    func code(in answer: [String: String]) throws -> String {
        if let error = answer["error"] {
            throw CommandFailure("the sign-in ended with \(error): \(answer["error_description"] ?? "")")
        }
        guard answer["state"] == state, let code = answer["code"] else {
            throw CommandFailure("the answer is not to this request: its state differs")
        }
        return code
    }
}
