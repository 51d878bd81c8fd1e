import Foundation

// What the sign-ins, the account, devices and possession are made of.
extension PosternClient {
    /// A call that needs no session, such as a request for a code.
    /// - Parameters:
    ///   - hint: whether the last ID token goes along as `IdTokenHint`: it vouches for this device.
    /// - Throws: what the server's refusal means for `step`.
    func post(
        _ path: String, _ json: JSONValue, hint: Bool = false, proof: Call.Proof = .session,
        repeats: Call.Repeats = .never, as step: Step = .other
    ) async throws -> Answer {
        var body = json
        if hint, let token = try await document().hint, case .object(var members) = json {
            members["IdTokenHint"] = .string(token)
            body = .object(members)
        }
        return try await accepted(Call(path: path, body: .json(body), proof: proof, repeats: repeats), as: step)
    }

    /// The same with a form; `client_id` is added. - Parameter hint: as `id_token_hint`.
    func post(
        _ path: String, form: [(String, String)], hint: Bool = false, proof: Call.Proof = .session,
        repeats: Call.Repeats = .never, as step: Step = .other
    ) async throws -> Answer {
        var form = form + [("client_id", configuration.clientID)]
        if hint, let token = try await document().hint { form.append(("id_token_hint", token)) }
        return try await accepted(Call(path: path, body: .form(form), proof: proof, repeats: repeats), as: step)
    }

    /// A request of the token endpoint; `client_id` is added.
    /// - Throws: what the server's refusal means for `step`.
    func token(
        _ form: [(String, String)], as step: Step, proof: Call.Proof = .session, repeats: Call.Repeats = .never,
        spendsNonce: Bool = false
    ) async throws -> TokenAnswer {
        let form = form + [("client_id", configuration.clientID)]
        let call = Call(
            path: Path.token, body: .form(form), proof: proof, repeats: repeats, spendsNonce: spendsNonce)
        let answer = try await accepted(call, as: step)
        guard let tokens = TokenAnswer(answer.json, at: surroundings.now()) else {
            throw PosternError.unavailable(retryAfter: nil)
        }
        if let time = tokens.idToken?.issuedAt { await learnTime(time) }
        return tokens
    }

    /// A call of the account endpoints (an access token of ``Audience/account``).
    /// - Throws: what the server's refusal means; ``PosternError/signedOut(_:)`` without a session.
    func accountCall(
        _ method: String, _ path: String, _ body: Call.Body = .none, repeats: Call.Repeats = .never
    ) async throws -> Answer {
        var isFirst = true
        while true {
            let token = try await accessToken(for: .account)
            let proof: Call.Proof = token.type == .dpop ? .session : .none
            let answer = try await perform(
                Call(method: method, path: path, body: body, token: token, proof: proof, repeats: repeats))
            if answer.isSuccess { return answer }
            guard isFirst, answer.status == 401, answer.authenticateError == "invalid_token" else {
                throw PosternError(answer, of: .other)
            }
            isFirst = false
            refused.insert(token.value)
        }
    }

    /// A call that the key of the store opens by itself (a proof without an access token), or with a token of its own such
    /// as the `authToken` of possession.
    func deviceCall(
        _ method: String, _ path: String, _ json: JSONValue? = nil, authToken: String? = nil, nonce: String? = nil,
        repeats: Call.Repeats = .never, held: TimeInterval = 0
    ) async throws -> Answer {
        let token = authToken.map { AccessToken(value: $0, type: .dpop, scopes: [], expiresAt: .distantFuture) }
        let call = Call(
            method: method, path: path, body: json.map(Call.Body.json) ?? .none, token: token, proof: .device,
            repeats: repeats, nonce: nonce, held: held)
        return try await accepted(call, as: .other)
    }

    func accepted(_ call: Call, as step: Step) async throws -> Answer {
        let answer = try await perform(call)
        guard answer.isSuccess else { throw PosternError(answer, of: step) }
        return answer
    }
}

extension Answer {
    /// `error` of the body, else of `WWW-Authenticate`.
    var authenticateError: String? {
        error ?? challenges.lazy.compactMap { $0.parameters["error"] }.first
    }
}
