import FoundationEssentials
import Persistence

/// What came of asking a provider.
enum ProviderOutcome: Sendable, Equatable {
    /// It took the message. `reference`: what it calls it.
    case sent(reference: String?)
    /// It will never take this message.
    case refused(DeliveryFailure)
    /// It did not take the message now.
    case failed(DeliveryFailure, retryAfter: Duration? = nil)
    /// The answer is missing: it may have taken the message.
    case inDoubt
}

/// What a pre-send hook said.
enum HookVerdict: Sendable {
    case allowed, denied
    /// Nothing that could be understood, in time.
    case unusable
    /// The call could not be made: the realm's key was not available.
    case notAsked
}

/// Hands messages to providers and asks pre-send hooks.
struct ProviderCaller: Sendable {
    let caller: HTTPCaller
    let signer: any CallSigner
    let secrets: SecretFiles
    let outbox: (any MessageMemory)?

    init(_ calls: OutgoingCalls) {
        caller = calls.caller
        signer = calls.signer
        secrets = calls.secrets
        outbox = calls.outbox
    }

    /// The longest a pre-send hook may take.
    private static let hookTime = Duration.seconds(3)

    /// Hands over one message.
    func send(
        _ message: LeasedMessage, _ words: MessageWords, to provider: Provider, before deadline: ContinuousClock.Instant
    ) async -> ProviderOutcome {
        do {
            switch provider.kind {
            case .outbox:
                guard let outbox else { return .failed(.provider) }
                outbox.keep(message, text: words.text ?? "", code: words.code, link: words.link)
                return .sent(reference: nil)
            case .webhook:
                guard let url = provider.url else { return .failed(.provider) }
                let body = try MessageEnvelope(message, words).json()
                guard let call = await call(url, body, about: message) else { return .failed(.credential) }
                return outcome(await caller.post(call, before: deadline))
            case .http:
                let call = try await call(of: provider, message, words)
                return outcome(await caller.post(call, before: deadline))
            }
        } catch is SecretFiles.Fault {
            return .failed(.credential)
        } catch {
            return .failed(.payload)
        }
    }

    /// Asks whether a message may be sent.
    func verdict(
        on message: LeasedMessage, of hook: PreSendHook, before deadline: ContinuousClock.Instant
    ) async -> HookVerdict {
        struct Answer: Decodable {
            let allow: Bool
        }
        guard let body = try? MessageEnvelope(message, nil).json(),
            var call = await call(hook.url, body, about: message)
        else { return .notAsked }
        call.total = Self.hookTime
        guard case .answered(status: 200, let body, isWhole: true, _) = await caller.post(call, before: deadline),
            let answer = try? JSONDecoder().decode(Answer.self, from: Data(body))
        else { return .unusable }
        return answer.allow ? .allowed : .denied
    }

    /// A call to an operator's endpoint, with a token of the realm; `nil` when none is available.
    private func call(_ url: String, _ body: [UInt8], about message: LeasedMessage) async -> HTTPCall? {
        guard let token = try? await signer.token(realm: message.realm, url: url, message: message.id, body: body)
        else { return nil }
        return HTTPCall(
            url: url, headers: [("Authorization", "Bearer \(token)"), ("Content-Type", "application/json")],
            body: body)
    }

    private func call(of provider: Provider, _ message: LeasedMessage, _ words: MessageWords) async throws -> HTTPCall {
        guard let url = provider.url, let fields = provider.fields,
            let body = HTTPTemplate.body(
                fields, as: provider.body ?? .form, HTTPTemplate.values(of: message, words, sender: provider.sender))
        else { throw MailRenderer.Failure.template }
        var headers = [(name: "Content-Type", value: body.type), (name: "Accept", value: "application/json")]
        if let name = provider.secretName, let auth = provider.auth {
            headers.append(try Self.header(auth, try await secrets.secret(name, of: message.realmSlug)))
        }
        return HTTPCall(url: url, headers: headers, body: body.bytes)
    }

    private static func header(_ auth: String, _ secret: String) throws -> (name: String, value: String) {
        switch auth {
        case "basic": return ("Authorization", "Basic \(Data(secret.utf8).base64EncodedString())")
        case "bearer": return ("Authorization", "Bearer \(secret)")
        default:
            guard auth.hasPrefix("header ") else { throw MailRenderer.Failure.template }
            return (String(auth.dropFirst(7)), secret)
        }
    }

    /// 2xx is sent, 400, 404, 410 and 422 are final, everything else may pass.
    private func outcome(_ answer: HTTPAnswer) -> ProviderOutcome {
        switch answer {
        case .inDoubt: .inDoubt
        case .failed(let failure): .failed(failure)
        case .answered(let status, let body, _, let retryAfter):
            switch status {
            case 200..<300: .sent(reference: Self.reference(in: body))
            case 400, 404, 410, 422: .refused(.reply(status))
            default: .failed(.reply(status), retryAfter: retryAfter)
            }
        }
    }

    /// `id` or `sid` of a JSON answer, if it is a short word.
    static func reference(in body: [UInt8]) -> String? {
        struct Answer: Decodable {
            let id: String?
            let sid: String?
        }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(body)), let text = answer.sid ?? answer.id,
            (1...200).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return text
    }
}
