import Grants
import Persistence
import ServiceLifecycle

/// Sign-ins in browsers: the authorization endpoint, its codes, consent, and the sign-out. The pages that people see
/// are those of ``ComposedPages``.
struct AuthorizationModule: Module {
    let authorizations: Authorizations
    let signOut: SignOut
    private let codes: AuthorizationCodeStore
    private let shared: SharedParts

    init(_ shared: SharedParts) {
        self.shared = shared
        codes = AuthorizationCodeStore(shared.database)
        authorizations = Authorizations(
            codes: codes, sessions: shared.browserSessions, limiter: shared.limiter, keyring: shared.keyring)
        signOut = SignOut(shared.browserSessions)
    }

    var grants: [any Grant] {
        [
            AuthorizationCodeGrant(
                codes: codes, addresses: shared.addressTokens, issuer: shared.issuer, limiter: shared.limiter)
        ]
    }

    /// The authorization endpoint, which Cotter's wire answers in other words.
    func endpoint(_ front: Front) -> AuthorizationRoutes {
        AuthorizationRoutes(
            authorizations: authorizations, clients: shared.clients, proofs: shared.proofs, limit: shared.limit,
            pages: front.pages)
    }

    func routes(_ front: Front) -> [Route] {
        endpoint(front).routes
            + front.pages.routes
            + SignOutRoutes(signOut: signOut, limit: shared.limit, pages: front.pages).routes
            + ConsentRoutes(consents: ConsentStore(shared.database), bearer: shared.bearer).routes
    }

    func services(in cluster: Database.Part) -> [any Service] {
        [
            LogoutTokenService(
                tokens: LogoutTokens(
                    LogoutTokenStore(cluster.database), realms: shared.realms, signingKeys: shared.signingKeys,
                    post: shared.above.postLogoutToken, clock: shared.clock, logger: shared.logger))
        ]
    }
}
