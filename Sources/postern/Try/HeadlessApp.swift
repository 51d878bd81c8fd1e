import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// A native app without a screen, speaking to a server as any client does.
struct HeadlessApp {
    let options: TryOptions
    private let client: HTTPClient

    struct Tokens: Decodable {
        let accessToken: String
        let refreshToken: String?
    }

    /// Makes an app, lends it, and closes its connections.
    static func use(_ options: TryOptions, _ body: (HeadlessApp) async throws -> Void) async throws {
        guard let url = URL(string: options.url), url.scheme == "http" || url.scheme == "https", url.host != nil else {
            throw CommandFailure("--url must be an origin such as http://localhost:8080")
        }
        let client = HTTPClient()
        do {
            try await body(HeadlessApp(options: options, client: client))
            try await client.shutdown()
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    /// Asks for a code and redeems it.
    func signInByCode() async throws -> Tokens {
        struct Receipt: Decodable { let AuthSession: String }
        let asked = Date()
        let receipt: Receipt = try decode(
            try await post("/api/account/native/otp/request", json: ["Email": options.email, "ClientId": options.client]))
        let code = try await code(since: asked)
        return try await token([
            ("grant_type", "urn:cocoar:otp"), ("client_id", options.client), ("auth_session", receipt.AuthSession),
            ("otp_code", code), ("scope", options.scope),
        ])
    }

    /// Uses a refresh token.
    func refresh(_ tokens: Tokens) async throws -> Tokens {
        guard let refreshToken = tokens.refreshToken else {
            throw CommandFailure("no refresh_token: ask for scope offline_access with --scope")
        }
        return try await token([
            ("grant_type", "refresh_token"), ("client_id", options.client), ("refresh_token", refreshToken),
        ])
    }

    /// Reads userinfo.
    func userInfo(_ tokens: Tokens) async throws {
        var request = HTTPClientRequest(url: options.url + "/connect/userinfo")
        request.headers.add(name: "Authorization", value: "Bearer \(tokens.accessToken)")
        say("> GET /connect/userinfo")
        _ = try await send(request)
    }

    private func token(_ form: [(String, String)]) async throws -> Tokens {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decode(try await post("/connect/token", form: form), with: decoder)
    }

    private func post(_ path: String, json: [String: String]) async throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try await post(path, "application/json", String(decoding: try encoder.encode(json), as: UTF8.self))
    }

    private func post(_ path: String, form: [(String, String)]) async throws -> Data {
        let unreserved = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        let body = form.map { "\($0)=\($1.addingPercentEncoding(withAllowedCharacters: unreserved) ?? "")" }
        return try await post(path, "application/x-www-form-urlencoded", body.joined(separator: "&"))
    }

    private func post(_ path: String, _ contentType: String, _ body: String) async throws -> Data {
        var request = HTTPClientRequest(url: options.url + path)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: contentType)
        request.body = .bytes(ByteBuffer(string: body))
        say("> POST \(path)\n> \(body)")
        return try await send(request)
    }

    private func send(_ request: HTTPClientRequest) async throws -> Data {
        let response: HTTPClientResponse
        do {
            response = try await client.execute(request, timeout: .seconds(10))
        } catch {
            throw CommandFailure("\(options.url) does not answer: \(error)")
        }
        let body = try await response.body.collect(upTo: 1 << 20)
        let text = String(buffer: body)
        say("< \(response.status.code) \(response.status.reasonPhrase)\n< \(text)\n")
        guard response.status == .ok else { throw CommandFailure("the server answered \(response.status.code)") }
        return Data(text.utf8)
    }

    private func decode<Value: Decodable>(_ data: Data, with decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        do {
            return try decoder.decode(Value.self, from: data)
        } catch {
            throw CommandFailure("the answer is not what the contract says: \(error)")
        }
    }

    /// The code given, or the newest in the dev outbox, or what the user types.
    private func code(since asked: Date) async throws -> String {
        if let code = options.code { return code }
        struct Mail: Decodable {
            let to: String
            let code: String?
            let at: String
        }
        for _ in 0..<50 {
            var request = HTTPClientRequest(url: options.url + "/dev/outbox.json")
            request.headers.add(name: "Accept", value: "application/json")
            let response = try await client.execute(request, timeout: .seconds(10))
            guard response.status == .ok else { break }
            let data = Data(buffer: try await response.body.collect(upTo: 1 << 20))
            let mails: [Mail] = try decode(data)
            let fresh = mails.first { mail in
                mail.to == options.email && mail.code != nil
                    && ((try? Date(mail.at, strategy: .iso8601.time(includingFractionalSeconds: true))) ?? asked) >= asked
            }
            if let code = fresh?.code {
                say("  the dev outbox has the code \(code)\n")
                return code
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        say("The code from the mail to \(options.email): ", terminator: "")
        guard let typed = readLine(), !typed.isEmpty else { throw CommandFailure("no code: give it with --code") }
        return typed
    }
}

extension Data {
    init(buffer: ByteBuffer) {
        self.init(buffer.readableBytesView)
    }
}
