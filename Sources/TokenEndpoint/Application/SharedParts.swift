import Foundation
import Grants
import Logging
import Persistence
import Telemetry

/// What modules are composed of that belongs to none of them.
struct SharedParts {
    let configuration: ServerConfiguration
    let database: Database
    let keyring: Keyring
    /// Of the modules of Swift above this one.
    let above: ServerParts
    let metrics: Metrics
    let transport: TransportMetrics
    let logger: Logger
    let databaseClock: DatabaseClock
    /// Seconds since the epoch by the database's clock.
    let clock: @Sendable () -> Double
    let realms: RealmDirectory
    let signingKeys: SigningKeys
    let issuer: TokenIssuer
    /// Counts in the database.
    let limiter: RateLimiter
    /// Counts in this process.
    let limit: LocalLimit
    let turns: Turns
    let sentForms: SentForms
    /// Requests that are held until something happens.
    let waiting: LongPolls
    /// Wakes the senders of messages.
    let delivery: ClusterSignals

    let sessions: SessionStore
    let browserSessions: BrowserSessionStore
    let accounts: ServiceAccountStore
    let addressTokens: AddressTokenStore

    let clients: ClientAuthenticator
    let proofs: Proofs
    let devices: DeviceAuthentication
    let verifier: AccessTokenVerifier
    let bearer: BearerAuthentication
    let signIn: SignInServices

    init(
        _ configuration: ServerConfiguration, database: Database, keyring: Keyring, above: ServerParts,
        metrics: Metrics, logger: Logger
    ) {
        self.configuration = configuration
        self.database = database
        self.keyring = keyring
        self.above = above
        self.metrics = metrics
        self.logger = logger
        transport = TransportMetrics(metrics.registry)
        let databaseClock = DatabaseClock(clock: { Date().timeIntervalSince1970 })
        self.databaseClock = databaseClock
        clock = { databaseClock.now }
        realms = RealmDirectory(
            database.parts.map { ClusterRealms(source: ConfigurationStore($0.database)) },
            noteContested: { host in
                logger.error("two clusters have a realm with the same host", metadata: ["host": "\(host)"])
            })
        signingKeys = SigningKeys(store: SigningKeyStore(database), keyring: keyring)
        issuer = TokenIssuer(keyring: keyring, signingKeys: signingKeys, clock: databaseClock.machine)
        limiter = Self.limiter(PermitStore(database), metrics, logger)
        limit = LocalLimit(observe: { metrics.countExcess(of: $0, enforced: $1) })
        turns = Turns()
        sentForms = SentForms(
            store: SentFormStore(database), keyring: keyring, countRepetition: metrics.countRepetition)
        let waiting = LongPolls(places: configuration.longPolls)
        self.waiting = waiting
        delivery = ClusterSignals(database)

        sessions = SessionStore(database)
        browserSessions = BrowserSessionStore(database)
        accounts = ServiceAccountStore(database)
        addressTokens = AddressTokenStore(database)

        clients = ClientAuthenticator(assertions: ClientAssertionStore(database), limiter: limiter, clock: clock)
        proofs = Proofs(
            verifier: DPoPVerifier(nonces: DPoPNonces(keyring: keyring), clock: clock), store: ProofStore(database),
            latest: { databaseClock.latest })
        devices = DeviceAuthentication(proofs: DeviceProofs(proofs))
        verifier = AccessTokenVerifier(
            keyring: keyring, signingKeys: signingKeys, sessions: sessions, accounts: accounts,
            addresses: addressTokens)
        bearer = BearerAuthentication(verifier: verifier, proofs: proofs, clock: clock)
        signIn = SignInServices(
            limiter: limiter, turns: turns, sessions: sessions, browserSessions: browserSessions, keyring: keyring)

        metrics.watch(database)
        metrics.watch(databaseClock)
        metrics.watch { [MetricSample("postern_held_requests", Double(waiting.occupied))] }
        metrics.watch(realms)
    }

    /// Wakes the senders of messages.
    var wakeDelivery: @Sendable () -> Void { { [delivery] in delivery.signal() } }

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
