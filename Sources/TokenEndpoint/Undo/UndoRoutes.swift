import Grants
import HTTPTypes
import Logging
import Persistence

/// `/undo/<token>`: the page behind the link in a notice of an added factor. GET changes nothing, so that mail scanners
/// do no harm; the POST of its form takes the factor away. The token is the page's only state: no cookie.
struct UndoRoutes: Sendable {
    let offers: UndoOffers
    private let question = PageTemplate("undo.html", style: "magic-login.css")
    private let result = PageTemplate("magic-login-result.html", style: "magic-login.css")

    init(offers: UndoOffers) {
        self.offers = offers
    }

    var routes: [Route] {
        [
            Route(prefix: "/undo/", [.get: { try await ask($0) }, .post: { try await answer($0) }]).logged(
                as: "undo page")
        ]
    }

    private func ask(_ exchange: Exchange) async throws -> Answer {
        let offer: UndoStore.Offer?
        do {
            offer = try await offers.offer(exchange.pathParameter, realm: exchange.realm, source: exchange.source)
        } catch {
            throw refusal(error, exchange)
        }
        guard let offer else { return page(.gone, exchange) }
        // Where it was added from, as mails and pages about links show it.
        let origin = RequestOrigin(application: "", time: offer.addedAt, source: offer.source)
        return question.answer([
            "realm": exchange.realm.displayName, "what": Self.name(of: offer), "time": origin.timeText,
            "address": origin.address ?? "unknown",
        ])
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        switch try exchange.form()["action"] {
        case "keep": return page(.kept, exchange)
        case "undo": break
        default: return try await ask(exchange)
        }
        do {
            let isUndone = try await offers.undo(
                exchange.pathParameter, realm: exchange.realm, source: exchange.source)
            exchange.logger.info(
                "factor undone", metadata: ["realm": "\(exchange.realm.slug)", "undone": "\(isUndone)"])
            return page(isUndone ? .undone : .gone, exchange)
        } catch {
            throw refusal(error, exchange)
        }
    }

    private static func name(of offer: UndoStore.Offer) -> String {
        switch offer.kind {
        case .passkey: "a passkey: \(AuthenticatorNames.name(of: UUIDValue(offer.label)))"
        case .totp: "an authenticator app"
        case .identifier: offer.label
        case .device: "a device"
        case nil: "a way to sign in"
        }
    }

    /// What the page says after an answer.
    private enum Message {
        case undone
        case kept
        case gone
        case limited
        case unavailable

        var status: HTTPResponse.Status {
            switch self {
            case .undone, .kept: .ok
            case .gone: .badRequest
            case .limited: .tooManyRequests
            case .unavailable: .serviceUnavailable
            }
        }

        var words: (heading: String, text: String) {
            switch self {
            case .undone:
                (
                    "Taken away",
                    "It no longer signs in to your account, and every session has ended. Sign in again, and look at what "
                        + "else your account has."
                )
            case .kept: ("Nothing was changed", "The link works for seven days from when the mail was sent.")
            case .gone:
                (
                    "There is nothing to undo",
                    "The link was used, is older than seven days, or what it was about is gone already."
                )
            case .limited: ("Too many tries", "The link still works. Wait a minute, then try again.")
            case .unavailable:
                ("Something went wrong on our side", "The link still works. Try again in a moment.")
            }
        }
    }

    private func page(_ message: Message, _ exchange: Exchange) -> Answer {
        result.answer(
            [
                "realm": exchange.realm.displayName, "tone": message.status == .ok ? "good" : "bad",
                "heading": message.words.heading, "text": message.words.text,
            ], status: message.status)
    }

    private func refusal(_ error: any Error, _ exchange: Exchange) -> Refusal {
        let error = TokenError(error)
        var answer = page(error.limit == nil ? .unavailable : .limited, exchange)
        answer.headers[.retryAfter] = String(error.limit?.retryAfterSeconds ?? 1)
        return Refusal(answer, because: error)
    }
}
