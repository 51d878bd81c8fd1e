package import Grants
import HTTPTypes
package import Persistence
import Texts
package import TokenEndpoint

/// The pages of browsers and system web views, composed.
package struct HostedPages: ComposedPages {
    private let parts: PageParts
    private let signIn: SignInRoutes
    private let pages: SignInPages
    private let signOut: SignOutPages
    /// All of their routes.
    package let routes: [Route]

    /// - Throws: an error if a template or text in the binary is broken.
    package init(_ parts: PageParts) throws {
        try self.init(parts, for: [])
    }

    /// - Parameter purposes: what a sign-in can be for, beside an authorization request.
    init(_ parts: PageParts, for purposes: [any PurposeReader]) throws {
        self.parts = parts
        let assets = AssetRoutes(images: parts.images)
        let looks = PageLooks(catalogue: parts.catalogue)
        pages = SignInPages(
            renderer: try PageRenderer(assets: assets.names), assets: assets, looks: looks, parts: parts,
            purposes: PurposeReaders(all: [AuthorizationPurposeReader(parts: parts)] + purposes))
        signIn = SignInRoutes(pages: pages, parts: parts)
        signOut = SignOutPages(pages: pages, parts: parts)
        routes =
            assets.routes + ModuleRoutes().routes + signIn.routes
            + MagicLinkRoutes(pages: pages, signIn: signIn, parts: parts).routes
            + UndoRoutes(pages: pages, parts: parts).routes
            + PossessionLinkRoutes(pages: pages, parts: parts).routes
    }

    package func begin(
        _ request: AuthorizationRequest, due: PageOutcome, session: BrowserSessionStore.Live?, _ exchange: Exchange
    ) async throws -> Answer {
        try await begin(
            AuthorizationPurpose(request, in: exchange.realm, parts.authorizations), due: due, session: session,
            exchange)
    }

    /// Begins a sign-in, or goes on with what is due.
    func begin(
        _ purpose: any SignInPurpose, due: PageOutcome = .login, session: BrowserSessionStore.Live? = nil,
        _ exchange: Exchange
    ) async throws -> Answer {
        try await signIn.begin(purpose, due: due, session: session, exchange)
    }

    package func refused(_ error: AuthorizationPageError, _ exchange: Exchange) -> Answer {
        pages.errorPage(ErrorPage.Kind(rawValue: error.rawValue) ?? .invalidRequest, exchange)
    }

    package func formPost(_ response: AuthorizationResponse, _ exchange: Exchange) -> Answer {
        pages.formPost(response, client: nil, exchange)
    }

    package func askToSignOut(_ request: SignOutRequest, _ exchange: Exchange) async throws -> Answer {
        try signOut.ask(request, exchange)
    }

    package func confirmSignOut(_ form: FormParameters, _ exchange: Exchange) async throws -> Answer {
        try await signOut.confirm(form, exchange)
    }

    package func signedOut(_ request: SignOutRequest, _ exchange: Exchange) -> Answer {
        signOut.done(request.client, exchange, isSignedOut: true, uiLocales: request.uiLocales)
    }

    package var unavailable: Answer { pages.unavailable }

    package func tryAgain(after retryAfter: Int, isLimited: Bool, _ exchange: Exchange) -> Answer {
        pages.errorPage(isLimited ? .rateLimited : .unavailable, exchange).retriable(after: retryAfter)
    }
}
