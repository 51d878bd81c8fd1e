package import Grants
package import Persistence
package import Texts

/// What the pages are composed of. The module of the pages stands above this one, so `Server.compose` hands it the
/// parts.
package struct PageParts: Sendable {
    package let authorizations: Authorizations
    package let signOut: SignOut
    package let browserSessions: BrowserSessionStore
    package let pageStates: PageStateStore
    package let sentForms: SentForms
    package let images: BrandStore
    package let signIn: SignInServices
    package let code: OTPFactor
    package let link: MagicLinkFactor
    package let passkey: PasskeyFactor
    package let passkeys: Passkeys
    package let requests: SignInRequests
    package let sentCode: SentCode
    package let mailedRegistration: SentCode
    package let sentLink: SentLink
    package let confirmation: MagicLinkConfirmation
    package let undo: UndoOffers
    package let addressVerifications: AddressVerifications
    package let identifiers: Identifiers
    package let possession: PossessionSteps
    package let limiter: RateLimiter
    package let limit: LocalLimit
    package let keyring: Keyring
    package let deadline: UniformDeadline
    package let catalogue: TextCatalogue
    /// Seconds since the epoch.
    package let clock: @Sendable () -> Double
}

extension PageParts {
    init(
        _ shared: SharedParts, _ messages: MessageSignInModule, _ passkeys: PasskeyModule,
        _ possession: PossessionModule, _ authorization: AuthorizationModule, _ account: AccountModule
    ) throws {
        let (database, keyring, limiter) = (shared.database, shared.keyring, shared.limiter)
        self.init(
            authorizations: authorization.authorizations, signOut: authorization.signOut,
            browserSessions: shared.browserSessions, pageStates: PageStateStore(database),
            sentForms: shared.sentForms, images: BrandStore(database), signIn: shared.signIn,
            code: messages.codeFactor, link: messages.linkFactor, passkey: passkeys.factor,
            passkeys: passkeys.passkeys, requests: messages.requests, sentCode: messages.code,
            mailedRegistration: messages.registration, sentLink: messages.link, confirmation: messages.confirmation,
            undo: UndoOffers(store: UndoStore(database), limiter: limiter, keyring: keyring),
            addressVerifications: AddressVerifications(
                store: AddressVerificationStore(database), dataKeys: DataKeyStore(database),
                codes: CodeStore(database), limiter: limiter, keyring: keyring, wakeDelivery: shared.wakeDelivery),
            identifiers: account.identifiers, possession: possession.steps, limiter: limiter, limit: shared.limit,
            keyring: keyring, deadline: shared.configuration.uniformDeadline, catalogue: try TextCatalogue(),
            clock: shared.clock)
    }

    /// Takes a permit of the limit `authorize` for a statement that takes none itself. - Throws: `rate_limited`.
    package func countLookUp(_ exchange: Exchange) throws(TokenError) {
        try limit.count(.authorize, exchange.source, realm: exchange.realm)
    }
}

/// The pages, composed.
package protocol ComposedPages: AuthorizationPages {
    /// All of their routes.
    var routes: [Route] { get }
}
