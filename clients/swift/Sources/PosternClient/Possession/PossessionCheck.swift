import Foundation

/// The proof that a phone number is at hand, which a backend began and whose `authToken` this app has. The key of the store
/// answers for this device.
public actor PossessionCheck {
    /// How far the check has come.
    public enum Step: String, Sendable {
        /// Nothing was sent yet: sending is the person's consent.
        case open
        /// A code or link is under way.
        case sent
        /// The link was opened on a phone, which now leads back to this app.
        case linked
        /// The key alone proves nothing; the backend decides.
        case required
        /// Proven.
        case passed
        /// Not proven: too many tries, a wrong number, too late.
        case failed
        /// Proven, and used.
        case redeemed
    }

    /// What carries the proof.
    public enum Channel: String, Sendable { case otp, link }

    /// Where the check stands.
    public struct Status: Sendable, Hashable {
        /// Of the server.
        public let id: String
        /// How far it has come.
        public internal(set) var step: Step
        /// Whether ``PossessionCheck/send(_:to:)`` needs a number.
        public internal(set) var needsNumber: Bool
        /// What may carry the proof.
        public let channels: [Channel]
        /// How many more messages may be sent.
        public internal(set) var sendsLeft: Int
        /// How many more codes may be tried; `nil` while the server has not said so.
        public internal(set) var triesLeft: Int?
        /// Where the message went, masked.
        public internal(set) var maskedNumber: String?
        /// Two digits to show: the person types them where the link is opened.
        public internal(set) var matchNumber: String?
        /// From when on another message may be sent, by the clock of the device.
        public internal(set) var resendAt: Date?
    }

    /// Where the check stands, as far as this object has heard.
    public private(set) var status: Status

    let client: PosternClient
    let authToken: String
    /// By the clock of the device.
    let expiresAt: Date

    init(_ client: PosternClient, authToken: String, _ status: Status, until expiresAt: Date) {
        self.client = client
        self.authToken = authToken
        self.status = status
        self.expiresAt = expiresAt
    }

    /// Sends a code or a link. Each message ends the one before it.
    /// - Parameter phone: where none is known, or to change it.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with `resend_too_soon`, `send_limit`,
    ///   `phone_number_needed`, `phone_number_invalid`, …: the check goes on.
    public func send(_ channel: Channel, to phone: String? = nil) async throws -> Status {
        var body: [String: JSONValue] = ["channel": .string(channel.rawValue)]
        body["phoneNumber"] = phone.map(JSONValue.string)
        let answer = try await call("send", body)
        status.needsNumber = false
        status.maskedNumber = answer.json?["phoneNumber"]?.string
        status.matchNumber = answer.json?["matchNumber"]?.string
        return status
    }

    /// Checks the code of the message.
    /// - Parameter code: as typed.
    /// - Throws: ``PosternError/refused(code:description:status:)`` with `otp_invalid` while tries are left, else with
    ///   `possession_failed`.
    public func check(_ code: String) async throws -> Status {
        guard !code.allSatisfy(\.isWhitespace) else { throw PosternError.misuse("the code is empty") }
        _ = try await call("check", ["otp": .string(code)], repeats: .whileLost)
        return status
    }

    /// Waits until the check has passed or failed: here, where the link is opened, or at the backend.
    /// - Throws: ``PosternError/unavailable(retryAfter:)`` when it has run out without an answer.
    public func wait() async throws -> Status {
        var pauses = Pauses()
        while !status.step.isOver {
            let (step, began) = (status.step, client.surroundings.uptime())
            var rest: TimeInterval?
            do {
                _ = try await call("result", ["wait": 25], held: 25)
                // An answer that was not held, and says nothing new, will be the same the next moment.
                let isNews = status.step != step || client.surroundings.uptime() - began >= 5
                if isNews { pauses = Pauses() } else { rest = 0 }
            } catch PosternError.unavailable(let retryAfter) {
                rest = retryAfter ?? 0
            } catch PosternError.rateLimited(let retryAfter) {
                rest = retryAfter
            }
            if let rest { try await sleep(max(pauses.next(), rest)) }
        }
        return status
    }

    /// - Throws: ``PosternError/unavailable(retryAfter:)`` when the check has run out by then.
    private func sleep(_ pause: TimeInterval) async throws {
        guard client.surroundings.now().addingTimeInterval(pause) < expiresAt else {
            throw PosternError.unavailable(retryAfter: nil)
        }
        do { try await client.surroundings.sleep(pause) } catch { throw PosternError.cancelled }
    }

    /// Ends the way of a link on this phone.
    /// - Parameter returned: the URL that led back to this app.
    public func finish(_ returned: URL) async throws -> Status {
        _ = try await call("finish", ["redirectUrl": .string(returned.absoluteString)])
        return status
    }

    /// Gives the check up.
    public func cancel() async throws { _ = try await call("cancel", [:]) }

    /// The sign-in used it up.
    func wasRedeemed() { status.step = .redeemed }

    /// Makes a call, and reads where the check stands then, of a refusal too.
    private func call(
        _ step: String, _ body: [String: JSONValue], repeats: Call.Repeats = .never, held: TimeInterval = 0
    ) async throws -> Answer {
        let call = Call(
            path: Self.path + step, body: .json(.object(body)), token: Self.token(authToken), proof: .device,
            repeats: repeats, held: held)
        let answer = try await client.perform(call)
        let now = client.surroundings.now()
        if let step = answer.json?["state"]?.string.flatMap(Step.init) { status.step = step }
        if let left = answer.json?["sendsLeft"]?.integer { status.sendsLeft = left }
        if let left = answer.json?["triesLeft"]?.integer { status.triesLeft = left }
        if let pause = answer.json?["resendAfter"]?.seconds { status.resendAt = now.addingTimeInterval(pause) }
        if answer.error == "possession_failed" { status.step = .failed }
        return try answer.success()
    }

    static let path = "/connect/possession/"

    static func token(_ authToken: String) -> AccessToken {
        AccessToken(value: authToken, type: .dpop, scopes: [], expiresAt: .distantFuture)
    }
}

extension PossessionCheck.Step {
    /// Nothing comes after it but a sign-in.
    var isOver: Bool { self == .passed || self == .failed || self == .redeemed }
}

extension PossessionCheck: CustomReflectable {
    /// Has nothing: the members hold secrets.
    public nonisolated var customMirror: Mirror { Mirror(self, children: [:], displayStyle: .class) }
}

extension PossessionCheck.Status: Discreet {
    /// Everything but the numbers to show and to call.
    public var shown: [(String, any Sendable)] {
        [
            ("id", id), ("step", step), ("needsNumber", needsNumber), ("channels", channels), ("sendsLeft", sendsLeft),
            ("triesLeft", triesLeft), ("resendAt", resendAt),
        ]
    }
}

extension PossessionCheck.Status {
    init?(_ json: JSONValue?) {
        guard let id = json?["authId"]?.string, let step = json?["state"]?.string.flatMap(PossessionCheck.Step.init)
        else { return nil }
        self.init(
            id: id, step: step, needsNumber: json?["phoneNumberNeeded"]?.bool ?? false,
            channels: json?["channels"]?.strings?.compactMap(PossessionCheck.Channel.init) ?? [],
            sendsLeft: json?["sendsLeft"]?.integer ?? 0)
    }
}
