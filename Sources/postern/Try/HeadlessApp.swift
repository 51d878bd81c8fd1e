import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// A native app without a screen, speaking to a server as any client does and printing what both say.
struct HeadlessApp {
    let options: TryOptions
    private let client: HTTPClient
    private let key: ProofKey?

    enum Method: String {
        case get = "GET"
        case post = "POST"
        case delete = "DELETE"
    }

    struct Tokens: Decodable {
        let accessToken: String
        let refreshToken: String?
        /// `Bearer` or `DPoP`.
        let tokenType: String
    }

    /// Makes an app, lends it, and closes its connections.
    static func use(_ options: TryOptions, _ body: (HeadlessApp) async throws -> Void) async throws {
        guard let url = URL(string: options.url), url.scheme == "http" || url.scheme == "https", url.host != nil else {
            throw CommandFailure("--url must be an origin such as http://localhost:8080")
        }
        var options = options
        if options.url.hasSuffix("/") { options.url.removeLast() }  // as browsers show an origin
        // Where a page leads is a step that is printed.
        let client = HTTPClient(configuration: .init(redirectConfiguration: .disallow))
        do {
            try await body(HeadlessApp(options: options, client: client, key: options.dpop ? ProofKey() : nil))
            try await client.shutdown()
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    /// The same app with another key, or without one.
    func holding(_ key: ProofKey?) -> HeadlessApp { HeadlessApp(options: options, client: client, key: key) }

    /// Posts to the token endpoint.
    func token(_ form: [(String, String)]) async throws -> Tokens {
        try decodeTokens(try await post("/connect/token", form: form))
    }

    /// Reads a success of the token endpoint.
    func decodeTokens(_ answer: Data) throws -> Tokens {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decode(answer, with: decoder)
    }

    /// Posts a form.
    func post(_ path: String, form: [(String, String)]) async throws -> Data {
        try await exchange(
            .post, path, contentType: "application/x-www-form-urlencoded", body: Self.encode(form))
    }

    /// A form as it is sent.
    static func encode(_ form: [(String, String)]) -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return form.map { "\($0)=\($1.addingPercentEncoding(withAllowedCharacters: unreserved) ?? "")" }
            .joined(separator: "&")
    }

    /// Posts JSON, with an access token if given.
    func post(_ path: String, json: String, tokens: Tokens? = nil) async throws -> Data {
        try await exchange(.post, path, tokens: tokens, contentType: "application/json", body: json)
    }

    /// Sends one request and prints it and its answer. - Throws: ``CommandFailure`` for an answer that is no success.
    func exchange(
        _ method: Method, _ path: String, tokens: Tokens? = nil, contentType: String? = nil, body: String? = nil
    ) async throws -> Data {
        let (status, answer) = try await attempt(method, path, tokens: tokens, contentType: contentType, body: body)
        guard (200..<300).contains(status) else { throw CommandFailure("the server answered \(status)") }
        return answer
    }

    /// Sends one request and prints it and its answer, also when the answer is an error.
    func attempt(
        _ method: Method, _ path: String, tokens: Tokens? = nil, contentType: String? = nil, body: String? = nil
    ) async throws -> (status: UInt, answer: Data) {
        let first = try await attempt(
            method, path, tokens: tokens, contentType: contentType, body: body, nonce: nil)
        // A server asks for a nonce when it cannot trust the clock of the app, or none (RFC 9449 §8).
        guard key != nil, let nonce = first.nonce, first.status == 400 || first.status == 401 else {
            return (first.status, first.answer)
        }
        let second = try await attempt(
            method, path, tokens: tokens, contentType: contentType, body: body, nonce: nonce)
        return (second.status, second.answer)
    }

    private func attempt(
        _ method: Method, _ path: String, tokens: Tokens?, contentType: String?, body: String?, nonce: String?
    ) async throws -> (status: UInt, answer: Data, nonce: String?) {
        var request = HTTPClientRequest(url: options.url + path)
        request.method = HTTPMethod(rawValue: method.rawValue)
        say("> \(method.rawValue) \(path)")
        if let tokens {
            request.headers.add(name: "Authorization", value: "\(tokens.tokenType) \(tokens.accessToken)")
            say("> Authorization: \(tokens.tokenType) \(tokens.accessToken)")
        }
        if let key {
            let proof = try key.proof(
                method: method.rawValue, url: options.url + path, accessToken: tokens?.accessToken, nonce: nonce)
            request.headers.add(name: "DPoP", value: proof)
            say("> DPoP: \(proof)")
        }
        if let contentType { request.headers.add(name: "Content-Type", value: contentType) }
        if let body {
            request.body = .bytes(ByteBuffer(string: body))
            say("> \(body)")
        }
        let (status, headers, answer) = try await execute(request)
        let text = String(decoding: answer, as: UTF8.self)
        say("< \(status.code) \(status.reasonPhrase)\(text.isEmpty ? "" : "\n< \(text)")\n")
        return (status.code, answer, headers["DPoP-Nonce"].first)
    }

    /// Posts JSON whose member `Proof` proves another key than that of the access token. The server asks for a nonce
    /// first, which costs a second request.
    func post(
        _ path: String, tokens: Tokens, proving device: ProofKey, _ json: (_ proof: String) -> String
    ) async throws -> Data {
        func proof(_ nonce: String?) throws -> String {
            try device.proof(method: "POST", url: options.url + path, accessToken: tokens.accessToken, nonce: nonce)
        }
        var (status, answer, nonce) = try await attempt(
            .post, path, tokens: tokens, contentType: "application/json", body: json(try proof(nil)), nonce: nil)
        if status == 400, let given = nonce {
            (status, answer, nonce) = try await attempt(
                .post, path, tokens: tokens, contentType: "application/json", body: json(try proof(given)), nonce: nil)
        }
        guard status == 200 else { throw CommandFailure("the server answered \(status)") }
        return answer
    }

    /// Reads JSON without printing anything; `nil` when the server has no such thing.
    func quietly<Value: Decodable>(get path: String) async throws -> Value? {
        let (status, answer) = try await send(HTTPClientRequest(url: options.url + path))
        return status == .ok ? try decode(answer) : nil
    }

    /// Reads text without printing anything.
    func quietlyText(get path: String) async throws -> String {
        let (_, answer) = try await send(HTTPClientRequest(url: options.url + path))
        return String(decoding: answer, as: UTF8.self)
    }

    /// Posts a form as a browser would, without printing anything.
    func attemptQuietly(_ path: String, form: [(String, String)]) async throws -> (status: UInt, answer: String) {
        var request = HTTPClientRequest(url: options.url + path)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
        request.body = .bytes(ByteBuffer(string: Self.encode(form)))
        let (status, answer) = try await send(request)
        return (status.code, String(decoding: answer, as: UTF8.self))
    }

    /// - Throws: ``CommandFailure`` when the answer does not have the expected shape.
    func decode<Value: Decodable>(_ data: Data, with decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        do {
            return try decoder.decode(Value.self, from: data)
        } catch {
            throw CommandFailure("the server sent an unexpected answer: \(error)")
        }
    }

    private func send(_ request: HTTPClientRequest) async throws -> (HTTPResponseStatus, Data) {
        let (status, _, body) = try await execute(request)
        return (status, body)
    }

    /// Sends one request without printing anything.
    func execute(
        _ request: HTTPClientRequest
    ) async throws -> (status: HTTPResponseStatus, headers: HTTPHeaders, body: Data) {
        do {
            let response = try await client.execute(request, timeout: .seconds(10))
            let body = try await response.body.collect(upTo: 1 << 20)
            return (response.status, response.headers, Data(body.readableBytesView))
        } catch {
            throw CommandFailure("\(options.url) does not answer: \(error)")
        }
    }
}
