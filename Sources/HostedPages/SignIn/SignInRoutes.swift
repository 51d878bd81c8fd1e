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
    let flow: SignInFlow
    let parts: PageParts

    var routes: [Route] {
        [
            Route("/sign-in", [.get: .page { try await show($0) }, .post: .page { try await submit($0) }])
                .logged(as: "sign-in page").unavailable(pages.unavailable),
            Route("/sign-in/wait", [.post: .page { try await wait($0) }]).logged(as: "sign-in page"),
        ]
    }

    // MARK: Begin

    /// The first page of an authorization request.
    func begin(
        _ request: AuthorizationRequest, due: PageOutcome, session: BrowserSessionStore.Live?, _ exchange: Exchange
    ) async throws -> Answer {
        let cookies = BrowserCookies(exchange)
        let context = SignInContext(exchange, request, cookies)
        let isMet = request.provesAddressOnly ? request.addressACR != nil : context.canProveWhatIsWanted
        guard isMet else {
            return respond(
                try await parts.authorizations.refuse(
                    request, .unmetAuthenticationRequirements, "The sign-in does not meet acr_values.",
                    realm: context.realm), context)
        }
        let browser = cookies.named
        var transaction = SignInTransaction(
            request: try await bytes(of: request, context), browser: browser.hash,
            expiresAt: Int(parts.clock()) + context.realm.hosted.signInLifetime, step: .address)
        transaction.address = request.loginHint ?? ""
        transaction.session = Array(cookies.session?.hash.prefix(8) ?? [])
        switch due {
        case .consent: transaction.step = .consent
        case .continue, .offerPasskey, .issued: transaction.step = .continueAs
        case .acr where context.mayStepUp(session):
            transaction.stepUp()
            return try await pages.page(transaction, context.steppingUp(transaction), live: session).setting(
                browser.header)
        default: if request.prompts.contains(.create), context.rules.offersRegistration { transaction.step = .register }
        }
        return try await pages.page(transaction, context, live: session).setting(browser.header)
    }

    /// The request in bytes. A long one is stored, so that `tx` fits into an address.
    private func bytes(of request: AuthorizationRequest, _ context: SignInContext) async throws -> [UInt8] {
        let encoded = request.encoded
        guard encoded.count > SignInTransaction.maximumRequest else { return encoded }
        if let id = request.pushedID { return [Self.storedMark] + id + request.client.key.bytes }
        let uri = try await parts.authorizations.store(
            request, realm: context.realm, source: context.exchange.source)
        let form = FormParameters([("client_id", request.client.clientID), ("request_uri", uri)]) ?? FormParameters()
        let stored = try await parts.authorizations.request(form, realm: context.exchange.realm)
        return [Self.storedMark] + (stored.pushedID ?? []) + request.client.key.bytes
    }

    /// Begins the name of a stored request, where a request in bytes begins with a smaller number.
    private static let storedMark: UInt8 = 255

    /// The client of a stored request; `nil` for a request in bytes.
    static func client(ofStored bytes: [UInt8]) -> UUIDValue? {
        bytes.first == storedMark && bytes.count == 1 + 32 + 16 ? UUIDValue(bytes: bytes[33...]) : nil
    }

    private func request(_ bytes: [UInt8], _ exchange: Exchange) async throws -> AuthorizationRequest {
        guard bytes.first == Self.storedMark else { return try AuthorizationRequest(bytes, realm: exchange.realm) }
        try parts.countLookUp(exchange)
        guard let key = Self.client(ofStored: bytes),
            let client = exchange.realm.clients.values.first(where: { $0.key == key })
        else { throw AuthorizationRefusal.page(.invalidClient) }
        return try await parts.authorizations.request(
            pushed: Array(bytes[1..<33]), of: client, realm: exchange.realm)
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
        switch transaction.step {
        case .consent, .continueAs, .offerPasskey:
            guard let live = try await flow.signedIn(transaction, context) else {
                return try await pages.page(
                    context.begun(from: transaction, at: parts.clock()), context, live: nil, status: status)
            }
            return try await pages.page(transaction, context, live: live, status: status)
        default: return try await pages.page(transaction, context, live: nil, status: status)
        }
    }

    // MARK: Answers

    func see(_ transaction: SignInTransaction, _ context: SignInContext) throws(TokenError) -> Answer {
        let text = try transaction.text(
            realm: context.exchange.realm, host: context.exchange.host, keyring: parts.keyring)
        return .seeOther("/sign-in" + "?tx=\(text)")
    }

    func respond(_ response: AuthorizationResponse, _ context: SignInContext) -> Answer {
        switch response.mode {
        case .query: .seeOther(response.url)
        case .formPost: pages.formPost(response, client: context.request.client.displayName, context.exchange)
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

    /// Opens `tx` and reads its request again, under the present configuration.
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

    /// Reads the request of a transaction again.
    func context(of transaction: SignInTransaction, _ exchange: Exchange) async throws -> SignInContext {
        SignInContext(exchange, try await request(transaction.request, exchange), BrowserCookies(exchange))
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
            var answer = pages.errorPage(error.limit != nil ? .rateLimited : .unavailable, exchange)
            answer.headers[.retryAfter] = String(error.limit?.retryAfterSeconds ?? 1)
            throw Refusal(answer, because: error)
        }
    }
}
