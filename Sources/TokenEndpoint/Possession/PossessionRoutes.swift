import Encoding
import Grants
import HTTPTypes
import Persistence
import Texts

/// `/connect/possession/*`: what an app does with the `authToken` that its backend gave it, by proofs of its own key.
struct PossessionRoutes: Sendable {
    let steps: PossessionSteps
    let tokens: PossessionTokens
    let authentication: DeviceAuthentication
    let room: LongPolls
    let limit: LocalLimit

    var routes: [Route] {
        [
            Route("/connect/possession/open", [.post: .possession(authentication, tokens) { try await open($0, $1) }]),
            Route("/connect/possession/send", [.post: .possession(authentication, tokens) { try await send($0, $1) }]),
            Route(
                "/connect/possession/check", [.post: .possession(authentication, tokens) { try await check($0, $1) }]),
            Route(
                "/connect/possession/result",
                [.post: .possession(authentication, tokens) { try await result($0, $1) }]),
            Route(
                "/connect/possession/finish",
                [.post: .possession(authentication, tokens) { try await finish($0, $1) }]),
            Route(
                "/connect/possession/cancel",
                [.post: .possession(authentication, tokens) { try await cancel($0, $1) }]),
        ].map { $0.requiring(.possession).logged(as: "possession").cors(.clients) }
    }

    private func open(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { body in
            let deviceID = try Self.text(body, "deviceId").flatMap { $0.isEmpty ? nil : $0 }
            guard deviceID.map({ UUIDValue($0) != nil }) ?? true else { throw PossessionFault.invalidRequest }
            let operatorToken = try Self.text(body, "operatorToken")
            guard operatorToken.map({ (1...4096).contains($0.utf8.count) && Self.isPlain($0) }) ?? true else {
                throw PossessionFault.invalidRequest
            }
            let entry = try await enter(caller, exchange)
            let facts = try await steps.open(
                entry, deviceID: deviceID.flatMap { UUIDValue($0) }, operatorToken: operatorToken,
                source: exchange.source)
            var object = JSONWriter()
            object.member("authId", facts.authID.description)
            object.member("state", facts.state.rawValue)
            object.member("phoneNumberNeeded", facts.phone == nil)
            object.member("channels", facts.channels.map(\.rawValue))
            object.member("sendsLeft", facts.sendsLeft)
            object.member("expiresIn", Int(facts.expiresIn))
            return Answer(json: object.finish())
        }
    }

    private func send(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { body in
            guard let channel = try Self.text(body, "channel") else { throw PossessionFault.invalidRequest }
            let named = PossessionSteps.NamedNumber(try Self.text(body, "phoneNumber"), realm: exchange.realm)
            let entry = try await enter(caller, exchange, named.number)
            let sent = try await steps.send(
                entry, channel: channel, to: named, source: exchange.source,
                locale: Language.preferred(in: exchange.request.headers[.acceptLanguage])?.tag)
            let policy = exchange.realm.possession
            var object = JSONWriter()
            object.member("state", sent.facts.state.rawValue)
            object.member("channel", sent.channel.rawValue)
            object.member("phoneNumber", MaskedPhone.text(sent.phone))
            object.member("expiresIn", sent.channel == .otp ? policy.otpLifetime : policy.linkLifetime)
            object.member("resendAfter", Int(sent.facts.cooldown.rounded(.up)))
            object.member("sendsLeft", sent.facts.sendsLeft)
            if sent.channel == .otp { object.member("triesLeft", sent.facts.triesLeft) }
            object.member("matchNumber", sent.matchNumber)
            return Answer(json: object.finish())
        }
    }

    private func check(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { body in
            guard let typed = body.text("otp"), typed.utf8.count <= TypedCode.maximumBytes else {
                throw PossessionFault.invalidRequest
            }
            _ = try await steps.check(try await enter(caller, exchange), code: TypedCode(typed))
            return Self.state(.passed)
        }
    }

    private func result(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { body in
            let wait = body.has("wait") ? body.integer("wait") : 0
            guard let wait, (0...25).contains(wait), body.text("wait") == nil else {
                throw PossessionFault.invalidRequest
            }
            let entry = try await enter(caller, exchange)
            let topic = WaitTopic(.transaction, entry.facts.id, realm: exchange.realm.id)
            guard wait > 0, !entry.facts.state.endsWait else { return Self.state(entry.facts.state) }
            // No notification is sent when the transaction expires.
            let left = Int(entry.facts.expiresIn.rounded(.up)) + 1
            let held = try await room.hold(exchange, for: min(Int(wait), left)) {
                let state = try await steps.state(of: entry)
                return state.endsWait ? Poll.found(state) : .nothing(state, topic)
            }
            let isLate = Int(wait) >= left && !held.found.endsWait
            let state = isLate ? try await steps.state(of: entry) : held.found
            return held.answer { _ in Self.state(state) }
        }
    }

    private func finish(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { body in
            guard let url = try Self.text(body, "redirectUrl") else { throw PossessionFault.invalidRequest }
            // Another URL costs the proof as well.
            guard let returned = ReturnedLink(url, realm: exchange.realm) else {
                _ = try await enter(caller, exchange)
                throw PossessionFault.redirectInvalid
            }
            guard returned.authID == caller.authID else {
                _ = try await enter(caller, exchange)
                throw PossessionRefusal.redirectUnknown
            }
            let facts = try await caller.device.using(in: exchange.realm) {
                try await steps.finish(
                    caller.authID, proof: caller.proof, returnCode: returned.code, realm: exchange.realm)
            }
            return Self.state(facts.state)
        }
    }

    private func cancel(_ exchange: Exchange, _ caller: PossessionCaller) async throws -> Answer {
        try await answering(exchange, caller) { _ in
            try await caller.device.using(in: exchange.realm) {
                try await steps.cancel(caller.authID, proof: caller.proof, realm: exchange.realm)
            }
            return Self.state(.failed)
        }
    }

    /// The limit, the body, and errors in this wire's form.
    private func answering(
        _ exchange: Exchange, _ caller: PossessionCaller, _ body: (JSONMembers) async throws -> Answer
    ) async throws -> Answer {
        try limit.count(.possession, .init(.target, caller.authID.description), realm: exchange.realm)
        do {
            let members: JSONMembers
            do {
                members = try await exchange.json()
            } catch {
                switch error.answer.status {
                case .contentTooLarge: throw PossessionFault.tooLarge
                case .unsupportedMediaType: throw PossessionFault.noJSON
                default: throw PossessionFault.invalidRequest
                }
            }
            return try await body(members)
        } catch let error as PossessionRefusal {
            throw error == .tokenUnknown ? Refusal(.dpopTokenChallenge) : Refusal(error.answer)
        } catch let error as PossessionFault {
            throw Refusal(error.answer)
        }
    }

    private func enter(
        _ caller: PossessionCaller, _ exchange: Exchange, _ number: PhoneNumber? = nil
    ) async throws -> PossessionSteps.Entry {
        try await caller.device.using(in: exchange.realm) {
            try await steps.enter(caller.authID, proof: caller.proof, phone: number, realm: exchange.realm)
        }
    }

    private static func text(_ body: JSONMembers, _ name: String) throws(PossessionFault) -> String? {
        guard body.has(name) else { return nil }
        guard let text = body.text(name) else { throw .invalidRequest }
        return text
    }

    /// What a header may carry.
    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }

    private static func state(_ state: PossessionState) -> Answer {
        var object = JSONWriter(reserving: 32)
        object.member("state", state.rawValue)
        return Answer(json: object.finish())
    }
}

/// What is wrong with a request before any statement.
private enum PossessionFault: Error {
    case invalidRequest
    case tooLarge
    case noJSON
    case redirectInvalid

    var answer: Answer {
        switch self {
        case .invalidRequest:
            .possession(.badRequest, "invalid_request", "A member is missing, of another type or out of bounds.")
        case .tooLarge: .possession(.contentTooLarge, "invalid_request", "The body is too large.")
        case .noJSON: .possession(.unsupportedMediaType, "invalid_request", "The body must be JSON, uncompressed.")
        case .redirectInvalid:
            .possession(.badRequest, "redirect_invalid", "The redirect URL does not come from a link.")
        }
    }
}

extension PossessionRefusal {
    /// `{"error", "message"}` and what the app needs beside.
    fileprivate var answer: Answer {
        switch self {
        case .wrongKey: .possession(.forbidden, "wrong_key", "Another key opened this transaction.")
        case .stepNotAllowed: .possession(.forbidden, "step_not_allowed", "The step is not allowed now.")
        case .transactionOver(let state):
            .possession(.conflict, "transaction_over", "The transaction is over.") {
                $0.member("state", state.rawValue)
            }
        case .channelNotAvailable:
            .possession(.badRequest, "channel_not_available", "The channel is not available here.")
        case .channelUnavailable: .channelUnavailable
        case .phoneNumberNeeded: .possession(.badRequest, "phone_number_needed", "A phone number is needed.")
        case .phoneNumberInvalid: .possession(.badRequest, "phone_number_invalid", "The phone number cannot be used.")
        case .phoneChangeNotAllowed:
            .possession(.forbidden, "phone_change_not_allowed", "The phone number may not be changed.")
        case .sendLimit: .possession(.badRequest, "send_limit", "No more messages are sent.")
        case .resendTooSoon(let seconds):
            .possession(.badRequest, "resend_too_soon", "Wait before the next message.") {
                $0.member("resendAfter", seconds)
            }
        case .otpInvalid(let left):
            .possession(.badRequest, "otp_invalid", "The code is wrong.") { $0.member("triesLeft", left) }
        case .possessionFailed: .possession(.badRequest, "possession_failed", "Possession was not proven.")
        case .redirectUnknown:
            .possession(.badRequest, "redirect_unknown", "The redirect URL is not of this transaction.")
        case .tokenUnknown: .dpopTokenChallenge
        }
    }
}

extension Answer {
    fileprivate static func possession(
        _ status: HTTPResponse.Status, _ error: String, _ message: String, _ more: (inout JSONWriter) -> Void = { _ in }
    ) -> Answer {
        var object = JSONWriter(reserving: 128)
        object.member("error", error)
        object.member("message", message)
        more(&object)
        return Answer(status, json: object.finish())
    }
}
