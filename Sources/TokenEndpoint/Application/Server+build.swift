import Foundation
public import Grants
public import Logging
public import Persistence
public import ServiceLifecycle

/// The composed application: what to run, in start order.
public struct Server: Sendable {
    /// Long-running parts; stopped in reverse order.
    public let services: [any Service]
    /// Signs calls to operators' endpoints.
    public let hookTokens: HookTokens
    /// Counts how an attempt at a message ended, by channel.
    public let countMessage: @Sendable (_ channel: String, _ outcome: String) -> Void
}

extension Server {
    /// Composes the application: grants into the registry, endpoints into routes. No other place knows all of them.
    ///
    /// - Parameters:
    ///   - compose: makes the pages of their parts.
    ///   - extraRoutes: the dev outbox under `postern dev`.
    ///   - postLogoutToken: posts a form to a client.
    ///   - wakeDelivery: called when a mail was queued.
    ///   - onServing: called once clients can connect.
    /// - Throws: an error whose text says which TLS file cannot be used.
    package static func build(
        _ configuration: ServerConfiguration, database: Database, databaseConfiguration: DatabaseConfiguration,
        keyring: Keyring,
        pages compose: (PageParts) throws -> any ComposedPages, extraRoutes: [Route] = [],
        postLogoutToken: @escaping LogoutTokens.Post, wakeDelivery: @escaping @Sendable () -> Void,
        onServing: @escaping @Sendable () -> Void, logger: Logger
    ) throws -> Server {
        let clock: @Sendable () -> Double = { Date().timeIntervalSince1970 }
        let databaseClock = DatabaseClock(clock: clock)
        let sessions = SessionStore(database)
        let accounts = ServiceAccountStore(database)
        let codes = CodeStore(database)
        let signInRequests = SignInRequestStore(database)
        let signingKeys = SigningKeys(store: SigningKeyStore(database), keyring: keyring)
        let issuer = TokenIssuer(keyring: keyring, signingKeys: signingKeys, clock: clock)
        let metrics = Metrics()
        let transport = TransportMetrics()
        metrics.watch(database)
        let limiter = limiter(PermitStore(database), metrics, logger)
        let turns = Turns()
        let wakeWorker = WakeSignal()
        let links = MagicLinkStore(database)
        let passkeyStore = PasskeyStore(database)
        let passkeys = Passkeys(store: passkeyStore, limiter: limiter, keyring: keyring, clock: clock)
        let secondFactors = SecondFactors(store: SecondFactorStore(database), keyring: keyring)
        let clients = ClientAuthenticator(
            assertions: ClientAssertionStore(database), limiter: limiter, clock: clock)
        let browserSessions = BrowserSessionStore(database)
        let authorizationCodes = AuthorizationCodeStore(database)
        let signIn = SignInServices(
            limiter: limiter, turns: turns, sessions: sessions, browserSessions: browserSessions, keyring: keyring)
        let codeFactor = OTPFactor(codes: codes, keyring: keyring, observe: metrics.count)
        let linkFactor = MagicLinkFactor(links: links, keyring: keyring)
        let passkeyFactor = PasskeyFactor(passkeys: passkeyStore, keyring: keyring)
        let service = TokenService(
            [
                SignInGrant(codeFactor, signIn, issuer: issuer),
                SignInGrant(linkFactor, signIn, issuer: issuer),
                SignInGrant(passkeyFactor, signIn, issuer: issuer),
                AuthorizationCodeGrant(codes: authorizationCodes, issuer: issuer, limiter: limiter),
                RefreshGrant(sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring),
                ClientCredentialsGrant(accounts: accounts, issuer: issuer, limiter: limiter),
            ], clients: clients, databaseClock: databaseClock)
        let verifier = AccessTokenVerifier(
            keyring: keyring, signingKeys: signingKeys, sessions: sessions, accounts: accounts)
        let refreshTokens = RefreshTokenVerifier(keyring: keyring, sessions: sessions)
        let revoker = TokenRevoker(verifier: verifier, sessions: sessions, accounts: accounts, keyring: keyring)
        let code = MailedCode(.otp, requests: signInRequests, keyring: keyring)
        let registration = MailedCode(.register, requests: signInRequests, keyring: keyring)
        let link = MailedLink(requests: signInRequests, keyring: keyring)
        let requests = SignInRequests(
            limiter: limiter, turns: turns, keyring: keyring, wakeWorker: wakeWorker.signal)
        let confirmation = MagicLinkConfirmation(links: links, limiter: limiter, turns: turns)
        let identifiers = Identifiers(
            store: IdentifierStore(database), limiter: limiter, keyring: keyring, wakeDelivery: wakeDelivery)
        let undo = UndoOffers(store: UndoStore(database), limiter: limiter, keyring: keyring)
        let bearer = BearerAuthentication(verifier: verifier, clock: clock)

        let authorizations = Authorizations(
            codes: authorizationCodes, sessions: browserSessions, limiter: limiter, keyring: keyring)
        let signOut = SignOut(browserSessions)
        let pages = try compose(
            PageParts(
                authorizations: authorizations, signOut: signOut, browserSessions: browserSessions,
                pageStates: PageStateStore(database),
                images: BrandStore(database), signIn: signIn, code: codeFactor, link: linkFactor,
                passkey: passkeyFactor, passkeys: passkeys, requests: requests, mailedCode: code,
                mailedRegistration: registration, mailedLink: link, confirmation: confirmation, limiter: limiter,
                keyring: keyring, deadline: configuration.uniformDeadline, clock: clock))

        let routes =
            TokenRoutes(service: service, metrics: metrics).routes
            + AuthorizationRoutes(
                authorizations: authorizations, clients: clients,
                limit: LocalLimit(observe: { metrics.countExcess(of: $0, enforced: $1) }), pages: pages
            ).routes
            + pages.routes
            + SignInRequestRoutes(requests: requests, code: code, registration: registration, link: link).routes
            + AppInfoRoutes().routes
            + UserInfoRoutes(bearer: bearer, identifiers: identifiers).routes
            + PasskeyRoutes(passkeys: passkeys, bearer: bearer).routes
            + SessionRoutes(sessions: OwnSessions(OwnSessionStore(database)), bearer: bearer).routes
            + AccountRoutes(account: OwnAccount(AccountStore(database)), bearer: bearer).routes
            + IdentifierRoutes(identifiers: identifiers, bearer: bearer).routes
            + UndoRoutes(offers: undo).routes
            + TOTPRoutes(secondFactors: secondFactors, bearer: bearer).routes
            + AssociationRoutes().routes
            + IntrospectionRoutes(clients: clients, verifier: verifier, refreshTokens: refreshTokens, clock: clock)
            .routes
            + RevocationRoutes(clients: clients, revoker: revoker, clock: clock).routes
            + DiscoveryRoutes(service: service, signingKeys: signingKeys, clock: clock).routes
            + SignOutRoutes(signOut: signOut, pages: pages).routes
            + ConsentRoutes(consents: ConsentStore(database), bearer: bearer).routes
            + extraRoutes
        let realms = RealmDirectory(source: ConfigurationStore(database))
        metrics.watch(realms)
        let responder = Responder(
            routes: routes, realms: realms, deadline: configuration.uniformDeadline,
            refusals: RefusalLimit(limiter: limiter),
            trustedProxies: configuration.trustedProxies,
            trustsForwardedHost: configuration.trustsForwardedHost, metrics: metrics, transport: transport,
            logger: logger)

        let worker = SignInRequestWorker(
            requests: signInRequests, factors: [code, registration, link], wake: wakeWorker, wakeDelivery: wakeDelivery,
            logger: logger)
        var services: [any Service] = [
            database,
            listener(databaseConfiguration, realms, databaseClock, clock, logger),
            SignInRequestService(worker: worker),
            TestCodeService(
                worker: TestCodeWorker(store: TestIdentityStore(database), keyring: keyring, logger: logger)),
            Sweeper(store: MaintenanceStore(database), logger: logger),
            SigningKeyRotation(keys: signingKeys, logger: logger),
            LogoutTokenService(
                tokens: LogoutTokens(
                    LogoutTokenStore(database), realms: realms, signingKeys: signingKeys, post: postLogoutToken,
                    clock: clock), logger: logger),
            KeyLineService(
                resealing: KeyResealing(store: DataKeyStore(database), keyring: keyring),
                lines: KeyLineStore(database), keyring: keyring, metrics: metrics, logger: logger),
        ]
        let tls = try configuration.tls.map {
            try TLSIdentity(certificate: $0.certificate, key: $0.key, logger: logger)
        }
        if let tls { services.append(tls) }
        let maximum = DescriptorLimit.connections(
            wanted: configuration.maximumConnections, databaseConnections: databaseConfiguration.connections)
        if maximum < configuration.maximumConnections {
            logger.notice(
                "the limit of open files allows fewer connections than POSTERN_MAX_CONNECTIONS",
                metadata: ["connections": "\(maximum)"])
        }
        services.append(
            ConnectionServer(
                address: configuration.listen,
                connections: OpenConnections(
                    maximum: maximum, maximumPerSource: Self.connectionsPerSource,
                    trusted: configuration.trustedProxies,
                    metrics: transport, logger: logger),
                metrics: transport, tls: tls, logger: logger,
                onServing: {
                    logger.notice("serving", metadata: ["listen": "\(configuration.listen)"])
                    onServing()
                },
                respond: { await responder.respond(to: $0, from: $1) }))
        if let listen = configuration.operationsListen {
            let queues = QueueGauges()
            metrics.watch { queues.gauges() }
            services.append(QueueWatch(queues: QueueStore(database), gauges: queues, logger: logger))
            services.append(
                operations(
                    listen, metrics, transport,
                    Readiness(store: MaintenanceStore(database), realms: realms, clock: databaseClock),
                    logger))
        }
        return Server(
            services: services, hookTokens: HookTokens(keys: signingKeys, realms: realms, clock: clock),
            countMessage: { metrics.countMessage(channel: $0, outcome: $1) })
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

    /// Keeps realm snapshots current: receives changes, and confirms several times a second that there were none.
    /// Compares the clocks.
    private static func listener(
        _ configuration: DatabaseConfiguration, _ realms: RealmDirectory, _ databaseClock: DatabaseClock,
        _ clock: @escaping @Sendable () -> Double, _ logger: Logger
    ) -> ListenConnection {
        ListenConnection(
            configuration: configuration, channels: ["postern_config"], clock: clock, logger: logger
        ) { event in
            switch event {
            case .clocks(let reading): note(reading, databaseClock, logger)
            case .heartbeat(let stamp): realms.confirm(stamp: stamp)
            case .notification(_, let realm): realms.changed(realm)
            case .connected, .lost: realms.invalidate()
            }
        }
    }

    /// Publishes what the clocks showed; writes one line when the difference becomes too large, and one when it ends.
    private static func note(_ reading: DatabaseClock.Reading, _ databaseClock: DatabaseClock, _ logger: Logger) {
        let wasWrong = databaseClock.wasSeenWrong
        databaseClock.saw(reading)
        guard databaseClock.wasSeenWrong != wasWrong else { return }
        if wasWrong {
            logger.notice("the clocks of this machine and the database agree again")
        } else {
            logger.error(
                "the clocks of this machine and the database differ by more than 60 s: no tokens are issued",
                metadata: ["seconds": "\(Int(reading.difference))"])
        }
    }

    /// The limit for an address that is not a trusted proxy.
    private static let connectionsPerSource = 256
    private static let operationsConnections = 32

    private static func operations(
        _ address: ListenAddress, _ metrics: Metrics, _ transport: TransportMetrics, _ ready: Readiness,
        _ logger: Logger
    ) -> ConnectionServer {
        let responder = OperationsResponder(metrics: metrics, transport: transport, isReady: ready.reason)
        // Its connections are not counted among those of the clients.
        let uncounted = TransportMetrics()
        let connections = OpenConnections(
            maximum: operationsConnections, maximumPerSource: operationsConnections, trusted: [], metrics: uncounted,
            logger: logger)
        return ConnectionServer(address: address, connections: connections, metrics: uncounted, logger: logger) {
            request, _ in await responder.respond(to: request)
        }
    }
}
