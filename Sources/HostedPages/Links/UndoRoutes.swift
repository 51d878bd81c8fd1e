import Grants
import HTTPTypes
import Logging
import Persistence
import Texts
import TokenEndpoint

/// `/undo/<token>`: the page behind the link in a notice of an added factor, of a device that proves a number, or of a
/// removed address. GET changes nothing, so that mail scanners do no harm; the POST of its form undoes the change. The
/// token is the page's only state: no cookie.
struct UndoRoutes: Sendable {
    let pages: SignInPages
    let parts: PageParts

    var routes: [Route] {
        [
            Route(prefix: "/undo/", [.get: .page { try await ask($0) }, .post: .page { try await answer($0) }])
                .logged(as: "undo page").unavailable(pages.unavailable)
        ]
    }

    private func ask(_ exchange: Exchange) async throws -> Answer {
        let offer: UndoStore.Offer?
        do {
            offer = try await parts.undo.offer(exchange.pathParameter, realm: exchange.realm, source: exchange.source)
        } catch {
            throw refusal(error, exchange)
        }
        guard let offer else { return result(.gone, exchange) }
        let look = pages.looks.look(exchange.realm, exchange)
        // Where it was done from, as mails and pages about links show it.
        let origin = RequestOrigin(application: "", time: offer.addedAt, source: offer.source)
        let texts = offer.kind == .removal ? "undo-removed" : "undo"
        return pages.renderer.page(
            "undo", step: "undo", title: "undo-title",
            [
                "change": .text("\(texts)-what"), "note": .text("\(texts)-note"), "button": .text("\(texts)-button"),
                "what": .value(Self.name(of: offer, look.texts)),
                "time": .value(look.texts.time(offer.addedAt)),
                "source": origin.address.map { .value($0) } ?? .text("link-page-unknown"),
            ], look: look, hidesReferrer: true)
    }

    private func answer(_ exchange: Exchange) async throws -> Answer {
        guard exchange.isOwnFormOfLink else { return pages.errorPage(.foreignForm, exchange) }
        let form: FormParameters
        do {
            form = try exchange.form()
        } catch {
            throw Refusal(pages.errorPage(.invalidRequest, exchange, status: error.answer.status))
        }
        switch form["action"] {
        case "keep": return result(.kept, exchange)
        case "undo": break
        default: return try await ask(exchange)
        }
        do {
            try parts.countLookUp(exchange)
            let form = SentForms.Form(of: [Array("undo".utf8), Array(exchange.pathParameter.utf8)])
            return try await parts.sentForms.answer(form, exchange) {
                let outcome = try await parts.undo.undo(
                    exchange.pathParameter, realm: exchange.realm, source: exchange.source)
                exchange.logger.info(
                    "factor undone", metadata: ["realm": "\(exchange.realm.slug)", "outcome": "\(outcome)"])
                let result = UndoResult(rawValue: outcome.rawValue) ?? .gone
                return SentForms.Outcome(
                    self.result(result, exchange), result.status == .ok ? .repetitions : .onlyThis)
            }
        } catch {
            throw refusal(error, exchange)
        }
    }

    private static func name(of offer: UndoStore.Offer, _ texts: Texts) -> String {
        switch offer.kind {
        case .passkey:
            [texts["undo-passkey"], AuthenticatorNames.known(UUIDValue(offer.label))].compactMap(\.self)
                .joined(separator: ": ")
        case .totp: texts["undo-totp"]
        case .identifier, .removal: offer.label
        case .device: texts["undo-device"]
        case .phoneKey: [texts["undo-device"], offer.label].joined(separator: ": ")
        case nil: texts["undo-other"]
        }
    }

    private func result(_ result: UndoResult, _ exchange: Exchange) -> Answer {
        let look = pages.looks.look(exchange.realm, exchange)
        var values: PageValues = ["text": .text("done-\(result.rawValue)")]
        if result == .limited || result == .unavailable { values.addReturn(to: exchange) }
        return pages.renderer.page(
            "done", step: "done", error: result.status == .ok ? nil : result.rawValue,
            title: "done-\(result.rawValue)-title", values, look: look, status: result.status, hidesReferrer: true)
    }

    private func refusal(_ error: any Error, _ exchange: Exchange) -> Refusal {
        let error = TokenError(error)
        let answer = result(error.limit == nil ? .unavailable : .limited, exchange)
        return Refusal(answer.retriable(after: error.retryAfterSeconds), because: error)
    }
}

/// What the page of an undo link says after an answer: a key of the texts.
enum UndoResult: String, Sendable, CaseIterable {
    case undone, restored, kept, gone, limited, unavailable

    var status: HTTPResponse.Status {
        switch self {
        case .undone, .restored, .kept: .ok
        case .gone: .badRequest
        case .limited: .tooManyRequests
        case .unavailable: .serviceUnavailable
        }
    }
}

extension PageValues {
    /// The way back to the page of a link that still works.
    mutating func addReturn(to exchange: Exchange) {
        set("retry", .flag(true))
        set("method", .value("get"))
        set("action", .value(exchange.request.path ?? ""))
    }
}
