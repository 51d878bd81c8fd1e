import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a call came to.
enum Outcome {
    case answer(Answer)
    /// Nothing was decided. Seconds, if the server named them.
    case lost(TimeInterval?)
}

extension PosternClient {
    /// Makes a call to the server. This is the only function that does.
    ///
    /// It looks into the store before each attempt, gives each a proof of its own, answers a request for a nonce once, and
    /// sends again what was lost if the call says so.
    ///
    /// - Returns: what the server decided, a refusal too.
    /// - Throws: ``PosternError/unavailable(retryAfter:)`` when nothing was decided; ``PosternError/cancelled``.
    func perform(_ call: Call) async throws -> Answer {
        switch try await outcome(of: call) {
        case .answer(let answer): return answer
        case .lost(let retryAfter): throw PosternError.unavailable(retryAfter: retryAfter)
        }
    }

    /// The same, for callers that tell a lost answer from a locked store.
    func outcome(of call: Call) async throws -> Outcome {
        var attempts = Attempts(call, until: surroundings.uptime() + 45)
        while true {
            let answer = try await attempt(call, attempts)
            switch attempts.next(after: answer, now: surroundings.uptime()) {
            case .done(let answer): return .answer(answer)
            case .again: continue
            case .pause(let seconds):
                log("retry", ["path": call.visiblePath])
                do { try await surroundings.sleep(seconds) } catch { throw PosternError.cancelled }
            case .giveUp(let seconds): return .lost(seconds)
            }
        }
    }

    /// One attempt. - Returns: `nil` when there was no answer.
    private func attempt(_ call: Call, _ attempts: Attempts) async throws -> Answer? {
        let document = try await document()
        var nonce = attempts.nonce ?? nonces.nonce(of: origin, at: surroundings.uptime())
        if !call.hasProof { nonce = nil }
        let request = try await request(call, nonce: nonce, document)
        let began = surroundings.uptime()
        let answer: Answer?
        do {
            let (body, response) = try await AnswerLimit.$current.withValue(.ofPostern) {
                try await configuration.transport.send(request)
            }
            answer = Answer(body, response)
        } catch {
            if Task.isCancelled { throw PosternError.cancelled }
            answer = nil
        }
        let milliseconds = Int(((surroundings.uptime() - began) * 1000).rounded())
        log(
            "request",
            [
                "method": call.method, "path": call.visiblePath, "status": "\(answer?.status ?? 0)",
                "ms": "\(milliseconds)",
            ])
        if call.spendsNonce, nonce != nil { nonces.drop(of: origin) }
        if let answer { await learn(from: answer, to: call) }
        return answer
    }

    /// What an answer says besides: the nonce to use next, the time, and that the server can be reached.
    private func learn(from answer: Answer, to call: Call) async {
        if let nonce = answer.nonce {
            nonces.came(nonce, from: origin, at: surroundings.uptime())
            log("nonce")
        }
        // A cache in between answers a GET with the time of long ago.
        let isFresh = call.method != "GET" || !answer.isSuccess
        if isFresh, answer.field("Age") == nil, let date = answer.field("Date").flatMap(HTTPDate.parse) {
            await learnTime(date)
        }
        if call.path != Path.revoke { revokeInBackground() }
    }

    /// Keeps the difference of the clocks when it is more than half of what a proof may be off (RFC 9449 §11.1).
    func learnTime(_ server: Date) async {
        let offset = server.timeIntervalSince(surroundings.now())
        // A proof of another century is refused in any case.
        guard abs(offset) < 3_155_760_000 else { return }
        let changed = try? await change { document in
            guard abs(offset - document.clockOffset) > 30 else { return false }
            document.clockOffset = abs(offset) > 30 ? offset.rounded() : 0
            return true
        }
        if changed == true { log("clock", ["offset": "\(Int64(offset))"]) }
    }

    private func request(_ call: Call, nonce: String?, _ document: Document) async throws -> URLRequest {
        let text = origin + call.path
        guard let url = URL(string: text) else { throw PosternError.misuse("\(call.visiblePath) is no path") }
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData)
        request.httpMethod = call.method
        if call.held > 0 { request.timeoutInterval = call.held + 15 }
        request.setValue(configuration.userAgent ?? UserAgent.ofThisApp, forHTTPHeaderField: "User-Agent")
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        if let token = call.token {
            request.setValue("\(token.type.rawValue) \(token.value)", forHTTPHeaderField: "Authorization")
        }
        func proof(_ which: Call.Proof) async throws -> String? {
            guard let key = try await key(for: which, in: document) else { return nil }
            return try await self.proof(
                by: key, method: call.method, url: text, token: call.token?.value, nonce: nonce, in: document)
        }
        // A bearer token is presented without a proof (RFC 9449 §7.1).
        if call.token?.type != .bearer, let proof = try await proof(call.proof) {
            request.setValue(proof, forHTTPHeaderField: "DPoP")
        }
        switch call.body {
        case .none: break
        case .form(let fields):
            request.setValue(Form.contentType, forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(Form.encode(fields).utf8)
        case .json(let value):
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = value.data
        case .proving(let body):
            guard let proof = try await proof(.device) else { throw PosternError.unavailable(retryAfter: nil) }
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = body(proof).data
        }
        return request
    }
}
