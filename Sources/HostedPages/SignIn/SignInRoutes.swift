import Encoding
import Foundation
import Grants
import HTTPTypes
import NIOCore
import Persistence
import TokenEndpoint

/// `/sign-in`: every step of a sign-in. A GET shows the step of its `tx` and changes nothing; a POST does what its
/// button says and leads to a GET or to the client.
struct SignInRoutes: Sendable {
    let pages: SignInPages
    let parts: PageParts

    var routes: [Route] {
        [
            Route("/sign-in", [.get: .page { try await show($0) }, .post: .page { try await submit($0) }])
                .logged(as: "sign-in page").unavailable(pages.unavailable),
            Route("/sign-in/wait", [.post: .page { try await wait($0) }]).logged(as: "sign-in page"),
        ]
    }

    // MARK: Begin

    /// The first page of a sign-in.
    /// - Parameters:
    ///   - due: what the purpose waits for; ``PageOutcome/login`` without a live session.
    ///   - session: who is signed in in the browser.
    func begin(
        _ purpose: any SignInPurpose, due: PageOutcome, session: BrowserSessionStore.Live?, _ exchange: Exchange
    ) async throws -> Answer {
        let cookies = BrowserCookies(exchange)
        let context = SignInContext(exchange, purpose, cookies)
        guard purpose.canBeMet(under: context.rules) else {
            return leave(to: try await purpose.refuse(.unmet), context)
        }
        let browser = cookies.named
        var transaction = SignInTransaction(
            purpose: try await purpose.encoded(exchange), browser: browser.hash,
            expiresAt: Int(parts.clock()) + context.realm.hosted.signInLifetime, step: .address)
        transaction.address = purpose.loginHint ?? ""
        transaction.session = Array(cookies.session?.hash.prefix(8) ?? [])
        switch due {
        case .consent: transaction.step = .consent
        case .continue, .offerPasskey, .issued: transaction.step = .continueAs
        case .acr where context.mayStepUp(session): transaction.stepUp()
        default: if purpose.wantsRegistration, context.rules.offersRegistration { transaction.step = .register }
        }
        return try await pages.page(transaction, context.steppingUp(transaction), live: session).setting(
            browser.header)
    }

    // MARK: Show

    private func show(_ exchange: Exchange) async throws -> Answer {
        try await answering(exchange) {
            let form = (try? FormParameters(parsing: exchange.request.query.utf8)) ?? FormParameters()
            let text = form["tx"] ?? ""
            let (transaction, context) = try await open(text, exchange)
            guard Int(parts.clock()) < transaction.expiresAt else { return pages.expired(text, context) }
            if let moved = try await signedInMeanwhile(transaction, context) { return try see(moved, context) }
            return try await page(transaction, context)
        }
    }

    /// The page of a step. Steps that name the account need the session; without it the sign-in begins again.
    func page(
        _ transaction: SignInTransaction, _ context: SignInContext, status: HTTPResponse.Status = .ok
    ) async throws -> Answer {
        guard transaction.step.page.namesAccount else {
            return try await pages.page(transaction, context, live: nil, status: status)
        }
        let live = try await SignInFlow(parts: parts).signedIn(transaction, context)
        let shown = live == nil ? context.begun(from: transaction, at: parts.clock()) : transaction
        return try await pages.page(shown, context, live: live, status: status)
    }

    // MARK: Answers

    func see(_ transaction: SignInTransaction, _ context: SignInContext) throws(TokenError) -> Answer {
        let text = try transaction.text(
            realm: context.exchange.realm, host: context.exchange.host, keyring: parts.keyring)
        return .seeOther("/sign-in" + "?tx=\(text)")
    }

    /// To where a sign-in ends.
    func leave(to end: SignInEnd, _ context: SignInContext) -> Answer {
        switch end {
        case .page(let path): .seeOther(path)
        case .response(let response, _):
            switch response.mode {
            case .query: .seeOther(response.url)
            case .formPost:
                pages.formPost(response, client: context.purpose.client?.displayName, context.exchange)
            }
        }
    }

    func header(_ cookie: SessionCookie?, _ context: SignInContext) -> String? {
        cookie.map { context.exchange.header(for: $0) }
    }

    // MARK: Wait

    /// Whether the link of a page was opened. A browser that the page is not of learns nothing.
    private func wait(_ exchange: Exchange) async throws -> Answer {
        var state = PageStateStore.LinkState.expired
        if exchange.isOwnForm, let form = try? self.form(exchange),
            let transaction = SignInTransaction(
                form["tx"] ?? "", realm: exchange.realm, host: exchange.host, keyring: parts.keyring),
            transaction.browser == BrowserCookies(exchange).browser,
            let handle = AuthSessionHandle(
                transaction.handle, realm: exchange.realm.id, keyring: parts.keyring)
        {
            state = try await parts.limiter.admitting(
                .authorize, [.init(.source, exchange.source)], realm: exchange.realm
            ) { permits in
                try await parts.pageStates.state(realm: exchange.realm.id, handle: handle.id, permits: permits)
            }
        }
        var object = JSONWriter(reserving: 32)
        object.member("state", state.rawValue)
        return Answer(json: object.finish())
    }

    // MARK: What a request holds

    /// - Throws: the page for a body that is not a form.
    func form(_ exchange: Exchange) throws -> FormParameters {
        do {
            return try exchange.form()
        } catch {
            throw PageError(.invalidRequest, status: error.answer.status)
        }
    }

    /// Opens `tx` and reads its purpose again, under the present configuration.
    func open(_ text: String, _ exchange: Exchange) async throws -> (SignInTransaction, SignInContext) {
        let transaction = try transaction(text, exchange)
        return (transaction, try await context(of: transaction, exchange))
    }

    /// Opens `tx`. - Throws: the page for one that is not this browser's.
    func transaction(_ text: String, _ exchange: Exchange) throws(PageError) -> SignInTransaction {
        guard let browser = BrowserCookies(exchange).browser else { throw PageError(.cookiesNeeded) }
        guard
            let transaction = SignInTransaction(
                text, realm: exchange.realm, host: exchange.host, keyring: parts.keyring),
            Int(parts.clock()) < transaction.expiresAt + SignInTransaction.afterlife
        else { throw PageError(.invalidRequest) }
        guard transaction.browser == browser else { throw PageError(.foreignForm) }
        return transaction
    }

    /// Reads the purpose of a transaction again.
    func context(of transaction: SignInTransaction, _ exchange: Exchange) async throws -> SignInContext {
        let purpose = try await pages.purposes.purpose(transaction.purpose, exchange)
        return SignInContext(exchange, purpose, BrowserCookies(exchange))
            .steppingUp(transaction).provingAgain(transaction)
    }

    /// Turns what may go wrong into pages and responses.
    func answering(_ exchange: Exchange, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            guard exchange.realm.hosted.isEnabled else { throw PageError(.hostedDisabled) }
            let answer = try await body()
            // What leads to a client is no page.
            let leaves = answer.headers[.location].map { !$0.hasPrefix("/") } ?? false
            return leaves ? answer : answer.setting(BrowserCookies(exchange).renewed)
        } catch let error as PageError {
            return pages.errorPage(error.kind, exchange, status: error.status)
        } catch AuthorizationRefusal.page(let error) {
            return pages.errorPage(ErrorPage.Kind(rawValue: error.rawValue) ?? .invalidRequest, exchange)
        } catch AuthorizationRefusal.response(let response) {
            return response.mode == .query
                ? .seeOther(response.url) : pages.formPost(response, client: nil, exchange)
        } catch {
            let error = TokenError(error)
            let answer = pages.errorPage(error.limit != nil ? .rateLimited : .unavailable, exchange)
            throw Refusal(answer.retriable(after: error.retryAfterSeconds), because: error)
        }
    }
}
