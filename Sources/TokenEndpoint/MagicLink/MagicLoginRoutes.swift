import Grants
import HTTPTypes
import Logging
import Persistence

/// `/magic-login` (contract §4.2): the page behind a link. GET changes nothing, so that mail scanners may come; its form decides.
struct MagicLoginRoutes: Sendable {
    let confirmation: MagicLinkConfirmation
    private let question = PageTemplate("magic-login.html", style: "magic-login.css")
    private let result = PageTemplate("magic-login-result.html", style: "magic-login.css")

    init(confirmation: MagicLinkConfirmation) {
        self.confirmation = confirmation
    }

    var routes: [Route] { [Route("/magic-login", [.get: { await ask($0) }, .post: { await answer($0) }])] }

    /// Anything that came in the query gets the same page: whether a link is alive only its answer tells.
    private func ask(_ exchange: Exchange) async -> Answer {
        let form = (try? FormParameters(parsing: exchange.request.query.utf8)) ?? FormParameters()
        let link =
            MagicLink(userID: form["userId"], token: form["token"])
            ?? MagicLink(standingInFor: "\(form["userId"] ?? "")&\(form["token"] ?? "")")
        do {
            let numbers = try await confirmation.numbers(for: link, realm: exchange.realm)
            return question.answer([
                "realm": exchange.realm.displayName, "user": link.formUserID, "token": link.formToken,
                "first": "\(numbers[0])", "second": "\(numbers[1])", "third": "\(numbers[2])",
            ])
        } catch {
            return page(.unavailable, exchange)
        }
    }

    private func answer(_ exchange: Exchange) async -> Answer {
        let form: FormParameters
        do {
            form = try exchange.form()
        } catch {
            return error.answer
        }
        guard let choice = MagicLinkConfirmation.Choice(form["number"]) else { return page(.unanswered, exchange) }
        guard
            let link = MagicLink(formUserID: form["userId"], formToken: form["token"])
                ?? MagicLink(userID: form["userId"], token: form["token"])
        else { return page(.unknown, exchange) }
        do {
            let outcome = try await confirmation.answer(
                choice, for: link, realm: exchange.realm, source: exchange.source)
            exchange.logger.info(
                "link answered", metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(outcome.rawValue)"])
            return page(MagicLoginMessage(outcome), exchange)
        } catch {
            exchange.logger.log(
                level: error.code == .temporarilyUnavailable ? .warning : .info, "link answered",
                metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(error.code.rawValue)"])
            guard let limit = error.limit else { return page(.unavailable, exchange) }
            var answer = page(.limited, exchange)
            answer.headers[.retryAfter] = String(limit.retryAfterSeconds)
            return answer
        }
    }

    private func page(_ message: MagicLoginMessage, _ exchange: Exchange) -> Answer {
        result.answer(
            [
                "realm": exchange.realm.displayName, "tone": message.tone, "heading": message.heading,
                "text": message.text,
            ], status: message.status)
    }
}

extension MagicLinkConfirmation.Choice {
    /// Two digits, or `none`; `nil` for anything else, which answers nothing.
    fileprivate init?(_ text: String?) {
        guard let text else { return nil }
        if text == "none" {
            self = .none
        } else if text.utf8.count == 2, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) {
            self = .number(number)
        } else {
            return nil
        }
    }
}
