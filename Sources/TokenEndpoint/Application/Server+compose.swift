import Foundation
import Grants
import Logging
import Persistence
import ServiceLifecycle
import Telemetry
import Texts

/// What answers requests and what works beside it, without a listener.
struct Application: Sendable {
    let responder: Responder
    let realms: RealmDirectory
    let databaseClock: DatabaseClock
    let metrics: Metrics
    let transport: TransportMetrics
    /// In start order.
    let services: [any Service]
}

extension Server {
    /// Composes what answers requests: grants into the registry, endpoints into routes. No other place knows all of
    /// them.
    ///
    /// - Throws: an error if a part cannot be made, as a page whose template is broken.
    static func compose(
        _ configuration: ServerConfiguration, database: Database, keyring: Keyring, parts: ServerParts,
        metrics: Metrics = Metrics(), tracer: OTLPTracer? = nil, logger: Logger
    ) throws -> Application {
        let databaseClock = DatabaseClock(clock: { Date().timeIntervalSince1970 })
        let clock: @Sendable () -> Double = { databaseClock.now }
        let sessions = SessionStore(database)
        let accounts = ServiceAccountStore(database)
        let codes = CodeStore(database)
        let signInRequests = SignInRequestStore(database)
        let signingKeys = SigningKeys(store: SigningKeyStore(database), keyring: keyring)
        let issuer = TokenIssuer(keyring: keyring, signingKeys: signingKeys, clock: databaseClock.machine)
        let transport = TransportMetrics(metrics.registry)
        metrics.watch(database)
        metrics.watch(databaseClock)
        let limiter = limiter(PermitStore(database), metrics, logger)
        let turns = Turns()
        let wakes = database.parts.map { _ in Wakes() }
        let deadline = configuration.uniformDeadline
        let wakeWorker: @Sendable () -> Void = { deadline.whenAnswered { for wake in wakes { wake.worker.signal() } } }
        let wakeDelivery: @Sendable () -> Void = { for wake in wakes { wake.delivery.signal() } }
        let wakeApprovals: @Sendable () -> Void = {
            deadline.whenAnswered { for wake in wakes { wake.approvals.signal() } }
        }
        let links = MagicLinkStore(database)
        let passkeyStore = PasskeyStore(database)
        let passkeys = Passkeys(store: passkeyStore, limiter: limiter, keyring: keyring, clock: clock)
        let deviceKeys = DeviceKeyStore(database)
        let secondFactors = SecondFactors(store: SecondFactorStore(database), keyring: keyring)
        let clients = ClientAuthenticator(
            assertions: ClientAssertionStore(database), limiter: limiter, clock: clock)
        let browserSessions = BrowserSessionStore(database)
        let authorizationCodes = AuthorizationCodeStore(database)
        let addressTokens = AddressTokenStore(database)
        let signIn = SignInServices(
            limiter: limiter, turns: turns, sessions: sessions, browserSessions: browserSessions, keyring: keyring)
        let codeFactor = OTPFactor(codes: codes, keyring: keyring, observe: metrics.count)
        let linkFactor = MagicLinkFactor(links: links, keyring: keyring)
        let passkeyFactor = PasskeyFactor(passkeys: passkeyStore, keyring: keyring)
        let refreshes = RefreshGrant(
            sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring, observe: metrics.count)
        let proofs = Proofs(
            verifier: DPoPVerifier(nonces: DPoPNonces(keyring: keyring), clock: clock), store: ProofStore(database),
            latest: { databaseClock.latest })
        let authentication = DeviceAuthentication(proofs: DeviceProofs(proofs))
        let realms = RealmDirectory(
            database.parts.map { ClusterRealms(source: ConfigurationStore($0.database)) },
            noteContested: { host in
                logger.error("two clusters have a realm with the same host", metadata: ["host": "\(host)"])
            })
        let possession = PossessionParts(
            database, signingKeys: signingKeys, realms: realms, limiter: limiter, turns: turns, keyring: keyring,
            post: parts.postSignal, wakeDelivery: wakeDelivery, databaseClock: databaseClock)
        let approvalStore = ApprovalStore(database)
        let approvalGrant = ApprovalGrant(store: approvalStore, signIn, issuer: issuer)
        let backchannel = ApprovalRequests(
            store: approvalStore, limiter: limiter, keyring: keyring, wakeWorker: wakeApprovals)
        let service = TokenService(
            [
                SignInGrant(codeFactor, signIn, issuer: issuer),
                SignInGrant(linkFactor, signIn, issuer: issuer),
                SignInGrant(passkeyFactor, signIn, issuer: issuer),
                SignInGrant(possession.factor, signIn, issuer: issuer),
                SignInGrant(DeviceFactor(devices: deviceKeys), signIn, issuer: issuer),
                approvalGrant,
                AuthorizationCodeGrant(
                    codes: authorizationCodes, addresses: addressTokens, issuer: issuer, limiter: limiter),
                refreshes,
                ClientCredentialsGrant(accounts: accounts, issuer: issuer, limiter: limiter),
            ], clients: clients, databaseClock: databaseClock, proofs: proofs)
        let verifier = AccessTokenVerifier(
            keyring: keyring, signingKeys: signingKeys, sessions: sessions, accounts: accounts,
            addresses: addressTokens)
        let refreshTokens = RefreshTokenVerifier(keyring: keyring, sessions: sessions)
        let revoker = TokenRevoker(
            verifier: verifier, sessions: sessions, accounts: accounts, addresses: addressTokens, keyring: keyring)
        let code = SentCode(.otp, requests: signInRequests, keyring: keyring)
        let registration = SentCode(.register, requests: signInRequests, keyring: keyring)
        let link = SentLink(requests: signInRequests, keyring: keyring)
        let requests = SignInRequests(
            limiter: limiter, turns: turns, keyring: keyring, wakeWorker: wakeWorker)
        let confirmation = MagicLinkConfirmation(links: links, limiter: limiter, turns: turns)
        let identifiers = Identifiers(
            store: IdentifierStore(database), limiter: limiter, keyring: keyring,
            wakeDelivery: wakeDelivery)
        let undo = UndoOffers(store: UndoStore(database), limiter: limiter, keyring: keyring)
        let bearer = BearerAuthentication(verifier: verifier, proofs: proofs, clock: clock)
        let waiting = LongPolls(places: configuration.longPolls)
        metrics.watch { [MetricSample("postern_held_requests", Double(waiting.occupied))] }

        let authorizations = Authorizations(
            codes: authorizationCodes, sessions: browserSessions, limiter: limiter, keyring: keyring)
        let signOut = SignOut(browserSessions)
        let sentForms = SentForms(
            store: SentFormStore(database), keyring: keyring, countRepetition: metrics.countRepetition)
        let limit = LocalLimit(observe: { metrics.countExcess(of: $0, enforced: $1) })
        let pages = try parts.pages(
            PageParts(
                authorizations: authorizations, signOut: signOut, browserSessions: browserSessions,
                pageStates: PageStateStore(database), sentForms: sentForms,
                images: BrandStore(database), signIn: signIn, code: codeFactor, link: linkFactor,
                passkey: passkeyFactor, passkeys: passkeys, requests: requests, sentCode: code,
                mailedRegistration: registration, sentLink: link, confirmation: confirmation, undo: undo,
                addressVerifications: AddressVerifications(
                    store: AddressVerificationStore(database), dataKeys: DataKeyStore(database), codes: codes,
                    limiter: limiter, keyring: keyring, wakeDelivery: wakeDelivery),
                identifiers: identifiers, possession: possession.steps,
                limiter: limiter, limit: limit, keyring: keyring, deadline: configuration.uniformDeadline,
                catalogue: try TextCatalogue(), clock: clock))

        let authorizationRoutes = AuthorizationRoutes(
            authorizations: authorizations, clients: clients, proofs: proofs, limit: limit, pages: pages)
        let routes =
            TokenRoutes(service: service, metrics: metrics).routes
            + authorizationRoutes.routes
            + CotterRoutes(
                authorization: authorizationRoutes,
                identities: CotterIdentities(
                    codes: IdentityCodeStore(database), refreshes: refreshes, issuer: issuer, limiter: limiter,
                    databaseClock: databaseClock),
                countMissingKey: transport.countMissingAPIKey
            ).routes
            + CotterEventRoutes(
                events: CotterEvents(
                    requests: backchannel, store: approvalStore, grant: approvalGrant, issuer: issuer),
                keys: APIKeys(databaseClock: databaseClock, countMissingKey: transport.countMissingAPIKey)
            ).routes
            + ApprovalRequestRoutes(requests: backchannel, clients: clients, proofs: proofs).routes
            + ApprovalRoutes(
                approvals: Approvals(store: approvalStore, limiter: limiter), authentication: authentication,
                waiting: waiting
            ).routes
            + pages.routes
            + SignInRequestRoutes(
                requests: requests, proofs: proofs, code: code, registration: registration, link: link
            ).routes
            + AppInfoRoutes().routes
            + UserInfoRoutes(bearer: bearer, identifiers: identifiers).routes
            + PasskeyRoutes(passkeys: passkeys, proofs: proofs, bearer: bearer, forms: sentForms).routes
            + DeviceRoutes(
                devices: Devices(store: deviceKeys, limiter: limiter, keyring: keyring, clock: clock),
                authentication: authentication, bearer: bearer
            ).routes
            + SessionRoutes(sessions: OwnSessions(OwnSessionStore(database)), bearer: bearer).routes
            + AccountRoutes(account: OwnAccount(AccountStore(database)), bearer: bearer).routes
            + IdentifierRoutes(identifiers: identifiers, bearer: bearer, forms: sentForms).routes
            + TOTPRoutes(secondFactors: secondFactors, bearer: bearer).routes
            + AssociationRoutes().routes
            + IntrospectionRoutes(
                clients: clients, verifier: verifier, refreshTokens: refreshTokens, signingKeys: signingKeys,
                databaseClock: databaseClock, clock: clock
            ).routes
            + RevocationRoutes(clients: clients, revoker: revoker, clock: clock).routes
            + DiscoveryRoutes(service: service, signingKeys: signingKeys, clock: clock).routes
            + SignOutRoutes(signOut: signOut, limit: limit, pages: pages).routes
            + ProveRoutes(possessions: possession.backend, service: service, bearer: bearer).routes
            + PossessionRoutes(
                steps: possession.steps, tokens: possession.tokens, authentication: authentication, room: waiting,
                limit: limit, forms: sentForms
            ).routes
            + ConsentRoutes(consents: ConsentStore(database), bearer: bearer).routes
            + parts.routes
        metrics.watch(realms)
        let responder = Responder(
            routes: routes, realms: realms, deadline: configuration.uniformDeadline,
            refusals: RefusalLimit(limiter: limiter),
            trustedProxies: configuration.trustedProxies,
            trustsForwardedHost: configuration.trustsForwardedHost, metrics: metrics, transport: transport,
            tracing: tracer.map(RequestTracing.init), logger: logger)

        var services: [any Service] = [database]
        for (part, wakes) in zip(database.parts, wakes) {
            services += try background(
                part,
                Background(
                    database: database, realms: realms, waiting: waiting, databaseClock: databaseClock,
                    factors: [code, registration, link], signingKeys: signingKeys, wakes: wakes, answered: deadline,
                    metrics: metrics,
                    keyring: keyring, parts: parts, clock: clock, logger: logger))
        }
        services.append(
            KeyLineService(
                stores: database.parts.map { KeyLineStore($0.database) }, keyring: keyring, metrics: metrics,
                logger: logger))
        return Application(
            responder: responder, realms: realms, databaseClock: databaseClock, metrics: metrics, transport: transport,
            services: services)
    }

    /// Counts every excess of a limit. For a limit in log-only mode, logs one line each time the database reports an
    /// excess.
    private static func limiter(_ permits: PermitStore, _ metrics: Metrics, _ logger: Logger) -> RateLimiter {
        RateLimiter(
            permits: permits,
            observe: { excess in
                metrics.countExcess(of: excess.limit, enforced: excess.enforced)
                guard excess.isNew, !excess.enforced else { return }
                logger.notice(
                    "rate limit exceeded",
                    metadata: [
                        "realm": "\(excess.realm)", "policy": "\(excess.limit.policy.rawValue)",
                        "dimension": "\(excess.limit.dimension.rawValue)", "mode": "log-only",
                        "subject": "\(excess.subject ?? "")",
                    ])
            })
    }
}
