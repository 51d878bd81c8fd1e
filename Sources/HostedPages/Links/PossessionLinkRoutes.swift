import Grants
import HTTPTypes
import Logging
import Persistence
import Texts
import TokenEndpoint

/// `/p/<token>`: the page behind a link that proves a phone number. GET looks nothing up: it shows the same page for
/// every link, and the link's first character says which. The POST of its form decides.
struct PossessionLinkRoutes: Sendable {
    let pages: SignInPages
    let parts: PageParts

    var routes: [Route] {
        [
            Route(prefix: "/p/", [.get: .page { try ask($0) }, .post: .page { try await answer($0) }])
                .logged(as: "possession link").unavailable(pages.unavailable)
        ]
    }

    private func ask(_ exchange: Exchange) throws -> Answer {
        guard exchange.realm.possession.isEnabled else { return Answer(.notFound) }
        return question(exchange)
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        guard exchange.realm.possession.isEnabled else { return Answer(.notFound) }
        guard exchange.isOwnFormOfLink else { return pages.errorPage(.foreignForm, exchange) }
        let form: FormParameters
        do {
            form = try exchange.form()
        } catch {
            throw Refusal(pages.errorPage(.invalidRequest, exchange, status: error.answer.status))
        }
        let asksNumber = PossessionLink.asksNumber(exchange.pathParameter)
        let action = form["action"] ?? (asksNumber ? "confirm" : "continue")
        guard ["confirm", "continue", "deny"].contains(action) else {
            return pages.errorPage(.invalidRequest, exchange)
        }
        var number: String?
        if asksNumber, action != "deny" {
            number = TypedCode(form["number"] ?? "").number(digits: 2)
            if number == nil { return question(exchange, isRepeated: true) }
        }
        do {
            try parts.countLookUp(exchange)
            // What leads back to the app is for the phone that opened the link: as far as that can be told.
            let form = SentForms.Form(
                of: [
                    "possession-link", exchange.pathParameter, exchange.source, exchange.userAgent ?? "", action,
                    number ?? "",
                ].map { Array($0.utf8) })
            return try await parts.sentForms.answer(form, exchange) {
                let (outcome, redirect) = try await parts.possession.answer(
                    exchange.pathParameter, denies: action == "deny", number: number, realm: exchange.realm)
                exchange.logger.info(
                    "possession link answered",
                    metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(outcome.rawValue)"])
                guard let redirect else {
                    return SentForms.Outcome(
                        outcome == .numberDue
                            ? question(exchange, isRepeated: true)
                            : result("possession-gone", .badRequest, exchange), .onlyThis)
                }
                let answer = Answer(.seeOther, headers: [.location: redirect, .referrerPolicy: "no-referrer"])
                return SentForms.Outcome(answer, outcome == .failed ? .onlyThis : .repetitions)
            }
        } catch {
            let error = TokenError(error)
            let answer =
                error.limit == nil
                ? result("unavailable", .serviceUnavailable, exchange) : result("limited", .tooManyRequests, exchange)
            throw Refusal(answer.retriable(after: error.retryAfterSeconds), because: error)
        }
    }

    /// - Parameter isRepeated: what was typed is not a number.
    private func question(_ exchange: Exchange, isRepeated: Bool = false) -> Answer {
        let look = pages.looks.look(exchange.realm, exchange)
        let step = PossessionLink.asksNumber(exchange.pathParameter) ? "confirm-possession" : "continue-possession"
        let values: PageValues = isRepeated ? ["fault": .text("fault-wrong_number")] : [:]
        return pages.renderer.page(
            step, step: step, error: isRepeated ? "wrong_number" : nil, title: "\(step)-title", values, look: look,
            status: isRepeated ? .badRequest : .ok, hidesReferrer: true)
    }

    private func result(_ key: String, _ status: HTTPResponse.Status, _ exchange: Exchange) -> Answer {
        let look = pages.looks.look(exchange.realm, exchange)
        var values: PageValues = ["text": .text("done-\(key)")]
        if status != .badRequest { values.addReturn(to: exchange) }
        return pages.renderer.page(
            "done", step: "done", error: key, title: "done-\(key)-title", values, look: look, status: status,
            hidesReferrer: true)
    }
}
