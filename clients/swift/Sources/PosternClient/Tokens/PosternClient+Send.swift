import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension PosternClient {
    /// The request with `Authorization` and, for a bound token, a proof for exactly its method and URL (RFC 9449 §7). Send
    /// it once and at once.
    ///
    /// - Throws: ``PosternError/misuse(_:)`` for plain http that is not loopback, a request that has `Authorization`
    ///   already, or a body stream; and what ``accessToken(for:)`` throws.
    public func authorized(_ request: URLRequest, for audience: Audience = .default) async throws -> URLRequest {
        try await prepared(request, audience).request
    }

    /// Sends a request to an API with an access token, and returns its answer, whatever it is. A token that the API
    /// refuses is refreshed once. No redirect is followed.
    ///
    /// - Throws: ``PosternError/stepUpNeeded(_:)`` when the API asks for a newer or stronger sign-in (RFC 9470);
    ///   ``PosternError/unavailable(retryAfter:)`` without an answer: the request is never repeated then.
    public func send(
        _ request: URLRequest, for audience: Audience = .default
    ) async throws -> (Data, HTTPURLResponse) {
        var mayAskNonce = true
        var mayRefresh = true
        while true {
            let (prepared, token, origin) = try await prepared(request, audience)
            let data: Data
            let response: HTTPURLResponse
            do {
                (data, response) = try await configuration.transport.send(prepared)
            } catch {
                throw Task.isCancelled ? PosternError.cancelled : PosternError.unavailable(retryAfter: nil)
            }
            // Only the body of a refusal is read here.
            let answer = Answer(response.statusCode == 401 ? data : Data(), response)
            if let nonce = answer.nonce { nonces.came(nonce, from: origin, at: surroundings.uptime()) }
            guard answer.status == 401 else { return (data, response) }
            switch answer.authenticateError {
            case "use_dpop_nonce"? where token.type == .dpop && answer.nonce != nil && mayAskNonce: mayAskNonce = false
            case "invalid_token"? where mayRefresh:
                mayRefresh = false
                refused.insert(token.value)
            case "insufficient_user_authentication"?:
                guard let challenge = StepUpChallenge(response) else { return (data, response) }
                throw PosternError.stepUpNeeded(challenge)
            default: return (data, response)
            }
        }
    }

    private func prepared(
        _ request: URLRequest, _ audience: Audience
    ) async throws -> (request: URLRequest, token: AccessToken, origin: String) {
        guard let url = request.url, let origin = Origin(url) else {
            throw PosternError.misuse("the request has no URL")
        }
        guard origin.isSecure else { throw PosternError.misuse("an access token needs https: \(origin.text)") }
        guard request.value(forHTTPHeaderField: "Authorization") == nil else {
            throw PosternError.misuse("the request has Authorization already")
        }
        guard url.user == nil, url.password == nil else {
            throw PosternError.misuse("a user or password in the URL would be a part of the proof")
        }
        guard request.httpBodyStream == nil else {
            throw PosternError.misuse("a body stream cannot be sent twice: use httpBody")
        }
        let token = try await accessToken(for: audience)
        var request = request
        request.setValue("\(token.type.rawValue) \(token.value)", forHTTPHeaderField: "Authorization")
        if token.type == .dpop {
            let document = try await document()
            guard let key = try await key(for: .session, in: document) else { throw PosternError.signedOut(.keyLost) }
            let proof = try await proof(
                by: key, method: request.httpMethod ?? "GET", url: url.absoluteString, token: token.value,
                nonce: nonces.nonce(of: origin.text, at: surroundings.uptime()), in: document)
            request.setValue(proof, forHTTPHeaderField: "DPoP")
        }
        return (request, token, origin.text)
    }
}
