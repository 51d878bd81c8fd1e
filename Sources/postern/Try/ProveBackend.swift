import Encoding
import Foundation
import FoundationNetworking

/// The backend of a site that proves phone numbers. It is no app, so it makes its calls itself.
struct ProveBackend {
    /// The answer of `/v3/unify`.
    struct Started: Decodable {
        let authToken: String
        let correlationId: String
    }

    private let origin: URL
    private let clientID: String
    private let secret: String
    private let transport: PrintingTransport

    init(_ server: ServerOptions, secret: String, over transport: PrintingTransport) throws {
        origin = try server.origin
        clientID = server.client
        self.secret = secret
        self.transport = transport
    }

    /// The access token of the service account.
    func token() async throws -> String {
        struct Tokens: Decodable { let access_token: String }
        let form = [("grant_type", "client_credentials"), ("client_id", clientID), ("client_secret", secret)]
        let tokens: Tokens = try await answer(to: URLRequest(posting: form, to: origin.appending(path: "token")))
        return tokens.access_token
    }

    /// Starts a transaction about a phone that the person holds.
    func begin(_ phone: String, _ token: String) async throws -> Started {
        var body = JSONWriter()
        body.member("phoneNumber", phone)
        body.member("possessionType", "mobile")
        body.member("allowOTPRetry", true)
        return try await answer(to: request("v3/unify", body.finish(), token))
    }

    /// What came of it: `pending`, `true`, `false` or `possession_required`.
    func success(of started: Started, _ token: String) async throws -> String {
        struct Status: Decodable { let success: String }
        var body = JSONWriter()
        body.member("correlationId", started.correlationId)
        let status: Status = try await answer(to: request("v3/unify-status", body.finish(), token))
        return status.success
    }

    private func request(_ path: String, _ json: [UInt8], _ token: String) -> URLRequest {
        var request = URLRequest(url: origin.appending(path: path))
        request.httpMethod = "POST"
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(json)
        return request
    }

    private func answer<Value: Decodable>(to request: URLRequest) async throws -> Value {
        let body: Data
        let response: HTTPURLResponse
        do {
            (body, response) = try await transport.send(request)
        } catch {
            throw CommandFailure("\(origin) does not answer: \(error.localizedDescription)")
        }
        guard (200..<300).contains(response.statusCode) else {
            throw CommandFailure("the server answered \(response.statusCode)")
        }
        do {
            return try JSONDecoder().decode(Value.self, from: body)
        } catch {
            throw CommandFailure("the server sent an unexpected answer: \(error)")
        }
    }
}
