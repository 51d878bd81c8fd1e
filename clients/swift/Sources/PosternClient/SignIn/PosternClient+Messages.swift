import Foundation

// Requests that make the server send a code or a link to an address.
extension PosternClient {
    /// Asks for a message, and stores the request.
    /// - Parameter members: address and names.
    func ask(_ kind: PendingRequest.Kind, _ members: [String: JSONValue]) async throws -> PendingRequest {
        let answer = try await message(kind, members)
        let made = try pending(kind, members, of: answer)
        try await change { $0.keep(made) }
        return made
    }

    /// Asks for another message of a request, and stores what became of it, unless it was given up meanwhile.
    func askAgain(_ kind: PendingRequest.Kind, _ former: PendingRequest) async throws -> PendingRequest {
        let answer = try await message(kind, former.asked.merging(["AuthSession": .string(former.handle)]) { $1 })
        var made = try pending(kind, former.asked, of: answer)
        made.members["id"] = .string(former.id)
        if let due = former.resendAt, due > surroundings.now() {
            // Too early: nothing was sent, so the times stay. The handle is spelled anew in each answer.
            made.resendAt = due
            made.set("expires", former.expiresAt)
        }
        let renewed = made
        try await change { document in
            guard document.pending.contains(where: { $0.id == renewed.id }) else { throw PosternError.cancelled }
            document.keep(renewed)
        }
        return renewed
    }

    private func message(_ kind: PendingRequest.Kind, _ members: [String: JSONValue]) async throws -> Answer {
        var body = members
        if kind == .identifier {
            return try await accountCall("POST", "/connect/identifiers/begin", .json(.object(body)))
        }
        body["ClientId"] = .string(configuration.clientID)
        // A link always goes by SMS.
        if kind == .link { body["Channel"] = nil }
        if let hint = try await document().hint { body["IdTokenHint"] = .string(hint) }
        let path =
            switch kind {
            case .registration: "/api/account/native/register"
            case .link: "/api/account/magic-link/request"
            default: "/api/account/native/otp/request"
            }
        return try await working(path, body)
    }

    /// Sends a request; does the work that the server may ask of strangers first, once.
    private func working(_ path: String, _ body: [String: JSONValue]) async throws -> Answer {
        let first = try await perform(Call(path: path, body: .json(.object(body)), proof: .session))
        guard first.status == 400, first.error == "challenge_required" else { return try first.success() }
        let solution: String?
        do {
            solution = try await WorkChallenge(first.json?["Challenge"])?.solved()
        } catch {
            throw PosternError.cancelled
        }
        guard let solution else { return try first.success() }
        let answered = body.merging(["Challenge": .string(solution)]) { $1 }
        return try await accepted(Call(path: path, body: .json(.object(answered)), proof: .session), as: .other)
    }

    private func pending(
        _ kind: PendingRequest.Kind, _ asked: [String: JSONValue], of answer: Answer
    ) throws -> PendingRequest {
        guard let json = answer.json, let handle = json["AuthSession"]?.string, let life = json["ExpiresIn"]?.seconds,
            let pause = json["ResendAfter"]?.seconds
        else { throw PosternError.unavailable(retryAfter: nil) }
        let now = surroundings.now()
        var made = PendingRequest(kind, handle: handle, lifetime: life, at: now)
        made.asked = asked
        made.resendAt = now.addingTimeInterval(pause)
        made.sendsLeft = json["SendsLeft"]?.integer
        made.members["interval"] = json["Interval"]
        made.members["matchNumber"] = json["MatchNumber"]
        return made
    }
}

extension Answer {
    /// - Throws: what a refusal means.
    func success(of step: Step = .other) throws -> Answer {
        guard isSuccess else { throw PosternError(self, of: step) }
        return self
    }

    /// What the body is. - Throws: ``PosternError/unavailable(retryAfter:)`` when it is not what the server promises.
    func item<Item>(_ make: (JSONValue?) -> Item?) throws -> Item {
        guard let item = make(json) else { throw PosternError.unavailable(retryAfter: nil) }
        return item
    }

    /// What the elements of the body are.
    func items<Item>(_ make: (JSONValue?) -> Item?) throws -> [Item] {
        guard let items = json?.array?.map({ make($0) }), items.allSatisfy({ $0 != nil }) else {
            throw PosternError.unavailable(retryAfter: nil)
        }
        return items.compactMap { $0 }
    }
}

extension JSONValue {
    /// A length of time; `nil` for what is none, and for more than ten years.
    var seconds: TimeInterval? { number.flatMap { (0...315_360_000).contains($0) ? $0 : nil } }

    /// A time of RFC 3339.
    var time: Date? {
        guard let string else { return nil }
        return (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(string))
            ?? (try? Date.ISO8601FormatStyle().parse(string))
    }
}
