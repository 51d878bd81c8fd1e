import Grants
import HTTPTypes
import Logging
import Persistence
import Texts
import TokenEndpoint

/// `/magic-login`: the page behind a link. GET changes nothing, so that mail scanners do no harm; the POST of its form
/// decides. In the browser that asked, the page goes on with the sign-in.
struct MagicLinkRoutes: Sendable {
    let pages: SignInPages
    let signIn: SignInRoutes
    let parts: PageParts

    var routes: [Route] {
        [
            Route("/magic-login", [.get: .page { try await ask($0) }, .post: .page { try await answer($0) }])
                .logged(as: "link page").unavailable(pages.unavailable)
        ]
    }

    /// The holder of the link may know what became of it.
    private func ask(_ exchange: Exchange) async throws -> Answer {
        let form = (try? FormParameters(parsing: exchange.request.query.utf8)) ?? FormParameters()
        // A query that names no link is looked up as one that there never was, so that it counts too.
        let link = Self.link(form) ?? MagicLink.unsent
        do {
            if let asking = try await page(of: link, exchange) { return try await goOn(with: link, asking, exchange) }
            return try await question(about: link, exchange)
        } catch {
            throw refusal(error, of: link, method: "get", [:], exchange)
        }
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        guard exchange.isOwnFormOfLink else { return pages.errorPage(.foreignForm, exchange) }
        let form: FormParameters
        do {
            form = try exchange.form()
        } catch {
            throw Refusal(pages.errorPage(.invalidRequest, exchange, status: error.answer.status))
        }
        guard let link = Self.link(form) else { return result(.unknown, exchange) }
        let action = form["action"] ?? "confirm"
        guard ["confirm", "deny", "continue"].contains(action) else {
            return pages.errorPage(.invalidRequest, exchange)
        }
        do {
            if action == "continue" { return try await goOn(from: link, exchange) }
            guard let choice = action == "deny" ? .notMe : MagicLinkConfirmation.Choice(form["number"]) else {
                return try await question(about: link, isRepeated: true, exchange)
            }
            try parts.countLookUp(exchange)
            let form = SentForms.Form(of: Self.requester(link) + [action, form["number"] ?? ""].map { Array($0.utf8) })
            return try await parts.sentForms.answer(form, exchange) {
                let outcome = try await parts.confirmation.answer(
                    choice, for: link, realm: exchange.realm, source: exchange.source)
                exchange.logger.info(
                    "link answered", metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(outcome.rawValue)"])
                let result = LinkResult(outcome, choice)
                return SentForms.Outcome(self.result(result, exchange), result.isGood ? .repetitions : .onlyThis)
            }
        } catch {
            let fields = ["action": action, "number": form["number"] ?? ""].filter { !$0.value.isEmpty }
            throw refusal(error, of: link, method: "post", fields, exchange)
        }
    }

    // MARK: The browser that asked

    /// The page of this browser that asked for the link.
    private func page(of link: MagicLink, _ exchange: Exchange) async throws -> PageStateStore.Asking? {
        guard let browser = BrowserCookies(exchange).browser else { return nil }
        try parts.countLookUp(exchange)
        return try await parts.pageStates.page(
            realm: exchange.realm.id, user: link.user, tokenHash: link.tokenHash, browser: browser)
    }

    /// Says whose link it is: the browser may be another person's since it asked.
    private func goOn(
        with link: MagicLink, _ asking: PageStateStore.Asking, _ exchange: Exchange
    ) async throws -> Answer {
        try await signIn.answering(exchange) {
            let (transaction, context) = try await signIn.open(String(decoding: asking.state, as: UTF8.self), exchange)
            var look = pages.looks.look(exchange.realm, exchange, uiLocales: context.purpose.uiLocales)
            if let client = context.purpose.client { look = look.filling(["client": client.displayName]) }
            var values: PageValues = ["user": .value(link.formUserID), "token": .value(link.formToken)]
            values.set(account: transaction.address)
            return pages.renderer.page(
                "continue-link", step: "continue-link", title: "link-here-title", values,
                look: look, hidesReferrer: true)
        }
    }

    private func goOn(from link: MagicLink, _ exchange: Exchange) async throws -> Answer {
        try parts.countLookUp(exchange)
        let form = SentForms.Form(of: Self.requester(link) + [BrowserCookies(exchange).value])
        return try await parts.sentForms.answer(form, exchange) {
            guard let asking = try await page(of: link, exchange) else {
                return SentForms.Outcome(result(.used, exchange), .onlyThis)
            }
            var sent: SentForms.Outcome?
            let answer = try await signIn.answering(exchange) {
                let state = String(decoding: asking.state, as: UTF8.self)
                let (transaction, context) = try await signIn.open(state, exchange)
                let outcome = try await signIn.redeem(asking.isConfirmed ? nil : link, transaction, context)
                sent = outcome
                return outcome.answer
            }
            sent?.answer = answer
            return sent ?? SentForms.Outcome(answer, .onlyThis)
        }
    }

    private static func requester(_ link: MagicLink) -> [[UInt8]] {
        ["magic-login", link.formUserID, link.formToken].map { Array($0.utf8) }
    }

    // MARK: Pages

    /// - Parameter isRepeated: what was typed is not a number.
    private func question(about link: MagicLink, isRepeated: Bool = false, _ exchange: Exchange) async throws -> Answer
    {
        let origin: RequestOrigin
        switch try await parts.confirmation.page(of: link, realm: exchange.realm, source: exchange.source) {
        case .open(let found): origin = found
        case .ended(let end): return result(LinkResult(end, .notMe), exchange)
        }
        let look = pages.looks.look(exchange.realm, exchange)
        var values: PageValues = [
            "user": .value(link.formUserID), "token": .value(link.formToken),
            "application": .value(origin.application), "time": .value(look.texts.time(origin.time)),
            "source": origin.address.map { .value($0) } ?? .text("link-page-unknown"),
        ]
        if isRepeated { values.set("fault", .text("fault-wrong_number")) }
        return pages.renderer.page(
            "confirm-link", step: "confirm-link", error: isRepeated ? "wrong_number" : nil,
            title: "link-page-title", values, look: look, status: isRepeated ? .badRequest : .ok,
            hidesReferrer: true)
    }

    private func result(
        _ result: LinkResult, _ exchange: Exchange, retry values: PageValues = [:]
    ) -> Answer {
        let look = pages.looks.look(exchange.realm, exchange)
        var values = values
        values.set("text", .text("done-\(result.rawValue)"))
        return pages.renderer.page(
            "done", step: "done", error: result.isGood ? nil : result.rawValue,
            title: "done-\(result.rawValue)-title", values, look: look, status: result.status,
            hidesReferrer: true)
    }

    /// The page of a request that may succeed a little later: it offers to repeat it.
    private func refusal(
        _ error: any Error, of link: MagicLink, method: String, _ fields: [String: String], _ exchange: Exchange
    ) -> Refusal {
        let error = TokenError(error)
        let all = ["userId": link.formUserID, "token": link.formToken].merging(fields) { $1 }
        let answer = result(
            error.limit == nil ? .unavailable : .limited, exchange,
            retry: [
                "retry": .flag(true), "method": .value(method), "action": .value("/magic-login"),
                "fields": .rows(
                    all.sorted { $0.key < $1.key }.map { ["name": .value($0.key), "value": .value($0.value)] }),
            ])
        return Refusal(answer.retriable(after: error.retryAfterSeconds), because: error)
    }

    /// As the mail spells it, or as the page's forms do.
    private static func link(_ form: FormParameters) -> MagicLink? {
        MagicLink(userID: form["userId"], token: form["token"])
            ?? MagicLink(formUserID: form["userId"], formToken: form["token"])
    }
}

/// What a link's page says after an answer.
enum LinkResult: String, Sendable, CaseIterable {
    case confirmed, denied, disowned, used, superseded, expired, unknown, limited, unavailable

    init(_ outcome: MagicLinkConfirmation.Outcome, _ choice: MagicLinkConfirmation.Choice) {
        switch outcome {
        case .confirmed: self = .confirmed
        case .denied: self = choice == .notMe ? .disowned : .denied
        case .answered, .redeemed: self = .used
        case .superseded: self = .superseded
        case .expired: self = .expired
        case .unknown: self = .unknown
        case .busy: self = .unavailable
        }
    }

    /// Whether it is what the person wanted.
    var isGood: Bool { self == .confirmed || self == .disowned }

    var status: HTTPResponse.Status {
        switch self {
        case .confirmed, .disowned: .ok
        case .limited: .tooManyRequests
        case .unavailable: .serviceUnavailable
        case .denied, .used, .superseded, .expired, .unknown: .badRequest
        }
    }
}

extension MagicLinkConfirmation.Choice {
    /// Two digits; `nil` for anything else, which answers nothing.
    init?(_ text: String?) {
        guard let number = TypedCode(text ?? "").number(digits: 2).flatMap({ Int($0) }) else { return nil }
        self = .number(number)
    }
}
