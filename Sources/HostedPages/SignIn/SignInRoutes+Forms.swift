import Grants
import HTTPTypes
import Logging
import TokenEndpoint

extension SignInRoutes {
    /// The POST of a page's form.
    func submit(_ exchange: Exchange) async throws -> Answer {
        try await answering(exchange) {
            guard exchange.isOwnForm else { throw PageError(.foreignForm) }
            let form = try self.form(exchange)
            let transaction = try transaction(form["tx"] ?? "", exchange)
            guard Int(parts.clock()) < transaction.expiresAt else {
                let context = try await context(of: transaction, exchange)
                guard form["action"] == SignInAction.restart.rawValue else { return try see(transaction, context) }
                return try see(context.begun(from: transaction, at: parts.clock()), context)
            }
            // Whether a message was sent, or a code was compared, must not show in the time; nor in that of a
            // repetition.
            var hidesTime = true
            let answer = try await parts.sentForms.answer(transaction.sent(form, exchange), exchange) {
                let context = try await context(of: transaction, exchange)
                if let moved = try await signedInMeanwhile(transaction, context) {
                    hidesTime = false
                    return SentForms.Outcome(try see(moved, context), .onlyThis)
                }
                var changed = transaction
                let move: SignInMove
                do {
                    move = try changed.move(form, context.rules)
                } catch {
                    throw PageError(.invalidRequest)
                }
                hidesTime = move.dependsOnAccount
                return try await perform(move, changed, context)
            }
            if hidesTime { await parts.deadline.hold(exchange) }
            return answer
        }
    }

    private func perform(
        _ move: SignInMove, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SentForms.Outcome {
        do {
            let outcome = try await context.perform(move, transaction, parts)
            if move == .show || move == .restart { return try outcome.sent(by: self, context, reach: .onlyThis) }
            return try outcome.sent(by: self, context)
        } catch let error as AuthorizationRefusal {
            throw error
        } catch is SignInRequests.SendLimit {
            var refused = transaction
            refused.fault = .sendLimit
            return SentForms.Outcome(try see(refused, context), .onlyThis)
        } catch {
            return SentForms.Outcome(await again(TokenError(error), transaction, context), .onlyThis)
        }
    }

    /// The same page, which says that it may go better a little later.
    private func again(
        _ error: TokenError, _ transaction: SignInTransaction, _ context: SignInContext
    ) async -> Answer {
        context.exchange.logger.info(
            "sign-in page",
            metadata: [
                "realm": "\(context.realm.slug)", "outcome": "\(error.code.rawValue)", "reason": "\(error.reason)",
            ])
        var transaction = transaction
        transaction.fault = error.limit != nil ? .rateLimited : .unavailable
        let status: HTTPResponse.Status = error.limit != nil ? .tooManyRequests : .serviceUnavailable
        // A step that names the account cannot be shown without the database.
        let shown = try? await page(transaction, context, status: status)
        let answer =
            shown ?? pages.errorPage(error.limit != nil ? .rateLimited : .unavailable, context.exchange, status: status)
        return answer.retriable(after: error.retryAfterSeconds)
    }

    /// Redeems a link in the browser that asked for it, and goes on there.
    /// - Parameter link: as it was opened; `nil`: its number was typed elsewhere.
    func redeem(
        _ link: MagicLink?, _ transaction: SignInTransaction, _ context: SignInContext
    ) async throws -> SentForms.Outcome {
        var transaction = transaction
        transaction.opened = link
        return try await SignInFlow(parts: parts).prove(linkAnd: nil, transaction, context).sent(by: self, context)
    }
}

extension SignInTransaction {
    /// The form of this page, as two requests can have it in common. What a browser does for one purpose is remembered
    /// in one row.
    fileprivate func sent(_ form: FormParameters, _ exchange: Exchange) -> SentForms.Form {
        var shown = self
        // Every time that the page is shown it has another ceremony, which only these fields answer.
        if form["assertion"] == nil, form["attestation"] == nil { shown.ceremony = [] }
        let fields = form.sorted.filter { $0.name != "tx" }.flatMap { [Array($0.name.utf8), Array($0.value.utf8)] }
        return SentForms.Form(
            of: [Array("sign-in".utf8), Array(exchange.host.utf8), BrowserCookies(exchange).value, purpose],
            saying: [shown.encoded] + fields)
    }
}

extension FlowOutcome {
    /// As the browser gets it, and as one that sends the same form again does.
    fileprivate func sent(
        by routes: SignInRoutes, _ context: SignInContext, reach: SentForms.Outcome.Reach? = nil
    ) throws -> SentForms.Outcome {
        switch self {
        case .next(let next, let cookie):
            let isAgain = next.fault != nil || next.step == .link && next.link != nil
            var sent = SentForms.Outcome(
                try routes.see(next, context).setting(routes.header(cookie, context)),
                reach ?? (isAgain ? .concurrent : .repetitions))
            sent.session = cookie?.cookie ?? BrowserCookie(next.ownSession)
            return sent
        case .end(let end, let cookie, let former):
            let cookies = routes.header(cookie, context)
            var sent = SentForms.Outcome(routes.leave(to: end, context).setting(cookies), reach ?? .repetitions)
            guard case .response(_, let codeHash?) = end, let former else { return sent }
            sent.codeHash = codeHash
            sent.afterwards = try routes.see(former, context).setting(cookies)
            // The proof of an address needs no session, and leaves none.
            if !context.rules.provesAddressOnly {
                sent.session = cookie?.cookie ?? BrowserCookie(former.ownSession) ?? context.cookies.session
            }
            return sent
        }
    }
}
