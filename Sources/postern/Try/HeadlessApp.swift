import Delivery
import Foundation
import HTTPTypes

/// A native app without a screen, speaking to a server as any client does and printing what both say.
struct HeadlessApp {
    let options: TryOptions
    private let client = HTTPClient()
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

    /// - Throws: ``CommandFailure`` when the options name no origin.
    init(_ options: TryOptions) throws {
        guard let url = URL(string: options.url), url.scheme == "http" || url.scheme == "https", url.host != nil else {
            throw CommandFailure("--url must be an origin such as http://localhost:8080")
        }
        var options = options
        if options.url.hasSuffix("/") { options.url.removeLast() }  // as browsers show an origin
        self.init(options: options, key: options.dpop ? ProofKey() : nil)
    }

    private init(options: TryOptions, key: ProofKey?) {
        (self.options, self.key) = (options, key)
    }

    /// The same app with another key, or without one.
    func holding(_ key: ProofKey?) -> HeadlessApp { HeadlessApp(options: options, key: key) }

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
    ) async throws -> (status: Int, answer: Data) {
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
    ) async throws -> (status: Int, answer: Data, nonce: String?) {
        var request = HTTPClient.Request(url: options.url + path)
        request.method = method.rawValue
        say("> \(method.rawValue) \(path)")
        if let tokens {
            request.headers.append(("Authorization", "\(tokens.tokenType) \(tokens.accessToken)"))
            say("> Authorization: \(tokens.tokenType) \(tokens.accessToken)")
        }
        if let key {
            let proof = try key.proof(
                method: method.rawValue, url: options.url + path, accessToken: tokens?.accessToken, nonce: nonce)
            request.headers.append(("DPoP", proof))
            say("> DPoP: \(proof)")
        }
        if let contentType { request.headers.append(("Content-Type", contentType)) }
        if let body {
            request.body = Array(body.utf8)
            say("> \(body)")
        }
        let answer = try await execute(request)
        let text = String(decoding: answer.body, as: UTF8.self)
        say("< \(answer.line)\(text.isEmpty ? "" : "\n< \(text)")\n")
        return (answer.status, Data(answer.body), answer.values(of: "DPoP-Nonce").first)
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
        let answer = try await execute(HTTPClient.Request(url: options.url + path))
        return answer.status == 200 ? try decode(Data(answer.body)) : nil
    }

    /// Reads text without printing anything.
    func quietlyText(get path: String) async throws -> String {
        let answer = try await execute(HTTPClient.Request(url: options.url + path))
        return String(decoding: answer.body, as: UTF8.self)
    }

    /// Posts a form as a browser would, without printing anything.
    func attemptQuietly(_ path: String, form: [(String, String)]) async throws -> (status: Int, answer: String) {
        var request = HTTPClient.Request(url: options.url + path)
        request.carry(form: form)
        let answer = try await execute(request)
        return (answer.status, String(decoding: answer.body, as: UTF8.self))
    }

    /// - Throws: ``CommandFailure`` when the answer does not have the expected shape.
    func decode<Value: Decodable>(_ data: Data, with decoder: JSONDecoder = JSONDecoder()) throws -> Value {
        do {
            return try decoder.decode(Value.self, from: data)
        } catch {
            throw CommandFailure("the server sent an unexpected answer: \(error)")
        }
    }

    /// Sends one request without printing anything.
    func execute(_ request: HTTPClient.Request) async throws -> HTTPClient.Answer {
        do {
            return try await client.answer(to: request)
        } catch {
            throw CommandFailure("\(options.url) does not answer: \(error)")
        }
    }
}

extension HTTPClient.Request {
    /// Makes it post a form.
    mutating func carry(form: [(String, String)]) {
        method = "POST"
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        body = Array(HeadlessApp.encode(form).utf8)
    }
}

extension HTTPClient.Answer {
    /// Its status as HTTP names it, such as `404 Not Found`.
    var line: String { HTTPResponse.Status(code: status).description }
}
