import Foundation
import Grants
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
public import Logging
import NIOCore
import NIOPosix
import NIOSSL
public import Persistence
public import ServiceLifecycle

/// A file of the configuration that cannot be used; the text names the variable.
struct UnusableFile: Error, CustomStringConvertible {
    let description: String
}

/// The composed application: what to run, in start order.
public struct Server: Sendable {
    /// Long-running parts; stopped in reverse order.
    public let services: [any Service]
}

extension Server {
    /// Puts the application together: grants into the registry, endpoints into routes. The one place that knows all of them.
    ///
    /// - Parameters:
    ///   - extraRoutes: the dev outbox under `postern dev`.
    ///   - wakeDelivery: called when a mail was queued.
    ///   - onServing: called once clients can connect.
    /// - Throws: an error whose text says which TLS file cannot be used.
    public static func build(
        _ configuration: ServerConfiguration, database: Database, databaseConfiguration: DatabaseConfiguration,
        keyring: Keyring,
        extraRoutes: [Route] = [], wakeDelivery: @escaping @Sendable () -> Void,
        onServing: @escaping @Sendable () -> Void, logger: Logger
    ) throws -> Server {
        let clock: @Sendable () -> Double = { Date().timeIntervalSince1970 }
        let sessions = SessionStore(database)
        let accounts = ServiceAccountStore(database)
        let signIns = SignInStore(database)
        let signingKeys = SigningKeys(store: SigningKeyStore(database), keyring: keyring)
        let issuer = TokenIssuer(keyring: keyring, signingKeys: signingKeys, clock: clock)
        let metrics = Metrics()
        let limiter = limiter(PermitStore(database), metrics, logger)
        let wakeWorker = WakeSignal()
        let links = MagicLinkStore(database)
        let passkeyStore = PasskeyStore(database)
        let passkeys = Passkeys(store: passkeyStore, limiter: limiter, keyring: keyring, clock: clock)
        let secondFactors = SecondFactors(store: SecondFactorStore(database), keyring: keyring)
        let clients = ClientAuthenticator(assertions: ClientAssertionStore(database), clock: clock)
        let service = TokenService(
            [
                OTPGrant(signIns: signIns, sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring),
                MagicLinkGrant(links: links, sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring),
                PasskeyGrant(
                    passkeys: passkeyStore, sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring),
                RefreshGrant(sessions: sessions, issuer: issuer, limiter: limiter, keyring: keyring),
                ClientCredentialsGrant(accounts: accounts, issuer: issuer, limiter: limiter),
            ], clients: clients)
        let verifier = AccessTokenVerifier(
            keyring: keyring, signingKeys: signingKeys, sessions: sessions, accounts: accounts)
        let refreshTokens = RefreshTokenVerifier(keyring: keyring, sessions: sessions)
        let requests = OTPRequests(signIns: signIns, limiter: limiter, keyring: keyring, wakeWorker: wakeWorker.signal)
        let linkRequests = MagicLinkRequests(
            links: links, limiter: limiter, keyring: keyring, wakeWorker: wakeWorker.signal)
        let confirmation = MagicLinkConfirmation(links: links, limiter: limiter, keyring: keyring)
        let bearer = BearerAuthentication(verifier: verifier, clock: clock)
        let deadline = configuration.uniformDeadline

        let routes =
            TokenRoutes(service: service, deadline: deadline, metrics: metrics).routes
            + OTPRequestRoutes(requests: requests, deadline: deadline).routes
            + AppInfoRoutes().routes
            + MagicLinkRequestRoutes(requests: linkRequests, deadline: deadline).routes
            + MagicLoginRoutes(confirmation: confirmation).routes
            + UserInfoRoutes(bearer: bearer).routes
            + PasskeyRoutes(passkeys: passkeys, bearer: bearer).routes
            + SessionRoutes(sessions: OwnSessionStore(database), bearer: bearer).routes
            + TOTPRoutes(secondFactors: secondFactors, bearer: bearer).routes
            + AssociationRoutes().routes
            + IntrospectionRoutes(clients: clients, verifier: verifier, refreshTokens: refreshTokens, clock: clock)
            .routes
            + RevocationRoutes(
                clients: clients, verifier: verifier, keyring: keyring, sessions: sessions, accounts: accounts,
                clock: clock
            ).routes
            + DiscoveryRoutes(service: service, signingKeys: signingKeys, clock: clock).routes
            + extraRoutes
        let realms = RealmDirectory(store: ConfigurationStore(database))
        let responder = Responder(
            routes: routes, realms: realms, trustedProxies: configuration.trustedProxies, metrics: metrics,
            logger: logger)

        let worker = OTPWorker(
            signIns: signIns, keyring: keyring, wake: wakeWorker, wakeDelivery: wakeDelivery, logger: logger)
        var services: [any Service] = [
            database,
            listener(databaseConfiguration, realms, logger),
            OTPWorkerService(worker: worker),
            TestCodeService(
                worker: TestCodeWorker(store: TestIdentityStore(database), keyring: keyring, logger: logger)),
            Sweeper(database: database, logger: logger),
            SigningKeyRotation(keys: signingKeys, logger: logger),
            try publicServer(configuration, responder, logger) {
                logger.notice("serving", metadata: ["listen": "\(configuration.listen)"])
                onServing()
            },
        ]
        if let operations = configuration.operationsListen {
            let ready = Readiness(database: database)
            services.append(QueueWatch(queues: QueueStore(database), gauges: metrics.queues, logger: logger))
            services.append(
                Application(
                    responder: OperationsResponder(metrics: metrics, isReady: ready.reason),
                    configuration: .init(address: .hostname(operations.host, port: operations.port)), logger: logger))
        }
        return Server(services: services)
    }

    /// What exceeds a limit is counted; of a limit that is only watched one line is written each time the database says so.
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

    /// Keeps realm snapshots true: hears of changes, and confirms several times a second that there were none.
    private static func listener(
        _ configuration: DatabaseConfiguration, _ realms: RealmDirectory, _ logger: Logger
    ) -> ListenConnection {
        ListenConnection(configuration: configuration, channels: ["postern_config"], logger: logger) { event in
            switch event {
            case .heartbeat(let stamp): realms.confirm(stamp: stamp)
            case .connected, .lost, .notification: realms.invalidate()
            }
        }
    }

    private static func publicServer(
        _ configuration: ServerConfiguration, _ responder: Responder, _ logger: Logger,
        onServing: @escaping @Sendable () -> Void
    ) throws -> any Service {
        let connections = ConnectionChannel(responder: responder, executors: EventLoopExecutors())
        let address = BindAddress.hostname(configuration.listen.host, port: configuration.listen.port)
        func server(_ channel: some ServerChildChannel) -> any Service {
            channel.server(
                configuration: .init(address: address), onServerRunning: { _ in onServing() },
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: logger)
        }
        guard let tls = configuration.tls else { return server(connections) }
        let chain = try reading("POSTERN_TLS_CERT", tls.certificate) {
            try NIOSSLCertificate.fromPEMFile(tls.certificate).map { NIOSSLCertificateSource.certificate($0) }
        }
        let key = try reading("POSTERN_TLS_KEY", tls.key) { try NIOSSLPrivateKey(file: tls.key, format: .pem) }
        return try reading("POSTERN_TLS_KEY", "\(tls.key), for the certificate \(tls.certificate)") {
            server(
                try TLSChannel(
                    connections,
                    tlsConfiguration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key))))
        }
    }

    private static func reading<Value>(_ variable: String, _ path: String, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw UnusableFile(description: "\(variable) names \(path), which cannot be used: \(error)")
        }
    }
}
