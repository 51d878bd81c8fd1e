import Grants
import HTTPTypes
import Logging
import Persistence

/// `/magic-login`: the page behind a link. GET changes nothing, so that mail scanners do no harm; the POST of its form
/// decides.
struct MagicLoginRoutes: Sendable {
    let confirmation: MagicLinkConfirmation
    private let question = PageTemplate("magic-login.html", style: "magic-login.css")
    private let result = PageTemplate("magic-login-result.html", style: "magic-login.css")
    private let retry = PageTemplate("magic-login-retry.html", style: "magic-login.css")

    init(confirmation: MagicLinkConfirmation) {
        self.confirmation = confirmation
    }

    var routes: [Route] {
        [Route("/magic-login", [.get: { try await ask($0) }, .post: { try await answer($0) }]).logged(as: "link page")]
    }

    /// Every query renders a page of the same shape; whether a link is valid is revealed only by the POST.
    private func ask(_ exchange: Exchange) async throws -> Answer {
        let form = (try? FormParameters(parsing: exchange.request.query.utf8)) ?? FormParameters()
        let link = Self.link(form) ?? MagicLink(standingInFor: "\(form["userId"] ?? "")&\(form["token"] ?? "")")
        return try await question(about: link, exchange)
    }

    /// - Parameter mistake: what was wrong with the last answer.
    private func question(about link: MagicLink, mistake: String? = nil, _ exchange: Exchange) async throws -> Answer {
        do {
            let origin = try await confirmation.origin(of: link, realm: exchange.realm, source: exchange.source)
            return question.answer(
                [
                    "realm": exchange.realm.displayName, "user": link.formUserID, "token": link.formToken,
                    "application": origin?.application ?? exchange.realm.app?.displayName ?? exchange.realm.displayName,
                    "time": origin?.timeText ?? "unknown", "address": origin?.address ?? "unknown",
                    "mistake": mistake ?? "", "invalid": mistake == nil ? "false" : "true",
                ], status: mistake == nil ? .ok : .badRequest)
        } catch {
            throw refusal(error, of: link, method: "get", number: "", exchange)
        }
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        let form = try exchange.form()
        guard let link = Self.link(form) else { return page(.unknown, exchange) }
        guard let choice = MagicLinkConfirmation.Choice(form["number"]) else {
            return try await question(about: link, mistake: "Type the two digits that your app shows.", exchange)
        }
        do {
            let outcome = try await confirmation.answer(
                choice, for: link, realm: exchange.realm, source: exchange.source)
            exchange.logger.info(
                "link answered", metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(outcome.rawValue)"])
            return page(MagicLoginMessage(outcome, choice), exchange)
        } catch {
            throw refusal(error, of: link, method: "post", number: choice.text, exchange)
        }
    }

    /// The page of a request that may succeed a little later: it offers to repeat it.
    private func refusal(
        _ error: any Error, of link: MagicLink, method: String, number: String, _ exchange: Exchange
    ) -> Refusal {
        let error = TokenError(error)
        let message = error.limit == nil ? MagicLoginMessage.unavailable : .limited
        var answer = retry.answer(
            [
                "realm": exchange.realm.displayName, "tone": message.tone, "heading": message.heading,
                "text": message.text, "method": method, "user": link.formUserID, "token": link.formToken,
                "number": number,
            ], status: message.status)
        answer.headers[.retryAfter] = String(error.limit?.retryAfterSeconds ?? 1)
        return Refusal(answer, because: error)
    }

    private func page(_ message: MagicLoginMessage, _ exchange: Exchange) -> Answer {
        result.answer(
            [
                "realm": exchange.realm.displayName, "tone": message.tone, "heading": message.heading,
                "text": message.text,
            ], status: message.status)
    }

    /// As the mail spells it, or as the page's forms do.
    private static func link(_ form: FormParameters) -> MagicLink? {
        MagicLink(userID: form["userId"], token: form["token"])
            ?? MagicLink(formUserID: form["userId"], formToken: form["token"])
    }
}

extension MagicLinkConfirmation.Choice {
    /// Two digits, or `none`; `nil` for anything else, which answers nothing. Keyboards of phones add a space.
    fileprivate init?(_ text: String?) {
        if text == "none" {
            self = .notMe
        } else if let text = text?.trimmingSpaces, text.utf8.count == 2,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text)
        {
            self = .number(number)
        } else {
            return nil
        }
    }

    /// As the form sends it.
    fileprivate var text: String {
        switch self {
        case .number(let number): number < 10 ? "0\(number)" : "\(number)"
        case .notMe: "none"
        }
    }
}
