import Foundation
import Grants
public import Logging
public import Persistence
public import ServiceLifecycle

/// The composed application: what to run, in start order.
public struct Server: Sendable {
    /// Long-running parts; stopped in reverse order.
    public let services: [any Service]
}

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
    /// - Parameters:
    ///   - extraRoutes: the dev outbox under `postern dev`.
    ///   - delivery: sends the mails that are queued.
    ///   - wakeDelivery: called when a mail was queued.
    static func compose(
        _ configuration: ServerConfiguration, database: Database, databaseConfiguration: DatabaseConfiguration,
        keyring: Keyring,
        extraRoutes: [Route] = [], delivery: [any Service] = [], wakeDelivery: @escaping @Sendable () -> Void,
        logger: Logger
    ) -> Application {
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
        let signIn = SignInServices(limiter: limiter, turns: turns, sessions: sessions, keyring: keyring)
        let service = TokenService(
            [
                SignInGrant(
                    OTPFactor(codes: codes, keyring: keyring, observe: metrics.count), signIn, issuer: issuer),
                SignInGrant(MagicLinkFactor(links: links, keyring: keyring), signIn, issuer: issuer),
                SignInGrant(PasskeyFactor(passkeys: passkeyStore, keyring: keyring), signIn, issuer: issuer),
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
        let bearer = BearerAuthentication(verifier: verifier, clock: clock)

        let routes =
            TokenRoutes(service: service, metrics: metrics).routes
            + SignInRequestRoutes(requests: requests, code: code, registration: registration, link: link).routes
            + AppInfoRoutes().routes
            + MagicLoginRoutes(confirmation: confirmation).routes
            + UserInfoRoutes(bearer: bearer).routes
            + PasskeyRoutes(passkeys: passkeys, bearer: bearer).routes
            + SessionRoutes(sessions: OwnSessions(OwnSessionStore(database)), bearer: bearer).routes
            + AccountRoutes(account: OwnAccount(AccountStore(database)), bearer: bearer).routes
            + TOTPRoutes(secondFactors: secondFactors, bearer: bearer).routes
            + AssociationRoutes().routes
            + IntrospectionRoutes(clients: clients, verifier: verifier, refreshTokens: refreshTokens, clock: clock)
            .routes
            + RevocationRoutes(clients: clients, revoker: revoker, clock: clock).routes
            + DiscoveryRoutes(service: service, signingKeys: signingKeys, clock: clock).routes
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
        // Delivery stops after the worker that feeds it and before the database that it writes to.
        let services: [any Service] =
            [database] + delivery + [
                ConfigurationWatch(realms: realms, databaseClock: databaseClock, logger: logger)
                    .listener(databaseConfiguration, clock: clock),
                SignInRequestService(worker: worker),
                TestCodeService(
                    worker: TestCodeWorker(store: TestIdentityStore(database), keyring: keyring, logger: logger)),
                Sweeper(store: MaintenanceStore(database), logger: logger),
                SigningKeyRotation(keys: signingKeys, logger: logger),
                KeyLineService(
                    resealing: KeyResealing(store: DataKeyStore(database), keyring: keyring),
                    lines: KeyLineStore(database), keyring: keyring, metrics: metrics, logger: logger),
            ]
        return Application(
            responder: responder, realms: realms, databaseClock: databaseClock, metrics: metrics, transport: transport,
            services: services)
    }

    /// Composes the server: the application behind its listeners.
    ///
    /// - Parameters:
    ///   - extraRoutes: the dev outbox under `postern dev`.
    ///   - delivery: sends the mails that are queued.
    ///   - wakeDelivery: called when a mail was queued.
    ///   - onServing: called once clients can connect.
    /// - Throws: an error whose text says which TLS file cannot be used.
    public static func build(
        _ configuration: ServerConfiguration, database: Database, databaseConfiguration: DatabaseConfiguration,
        keyring: Keyring,
        extraRoutes: [Route] = [], delivery: any Service, wakeDelivery: @escaping @Sendable () -> Void,
        onServing: @escaping @Sendable () -> Void, logger: Logger
    ) throws -> Server {
        let application = compose(
            configuration, database: database, databaseConfiguration: databaseConfiguration, keyring: keyring,
            extraRoutes: extraRoutes, delivery: [delivery], wakeDelivery: wakeDelivery, logger: logger)
        let (responder, metrics, transport) = (application.responder, application.metrics, application.transport)
        var services = application.services
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
                    Readiness(
                        store: MaintenanceStore(database), realms: application.realms,
                        clock: application.databaseClock),
                    logger))
        }
        return Server(services: services)
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
