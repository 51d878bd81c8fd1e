import ArgumentParser
import Delivery
import HostedPages
import Glibc
import Grants
import Logging
import NIOCore
import Persistence
import ServiceLifecycle
import Telemetry
import UnixSignals
import TokenEndpoint

/// `postern serve`.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the production server.",
        discussion: """
            Configured by environment variables, or by the same names in --config FILE:
              POSTERN_DATABASE_URL         libpq URI; a login role that is postern_app or a member of it (required)
              POSTERN_SECRET_KEY_FILE      32 random bytes in base64 per line, newest first, file mode 0400 or 0600 \
            (required)
              POSTERN_SMTP_URL             smtp://[user:pass@]host:port, smtps://…, ?starttls=required|optional|off \
            (required)
              POSTERN_SMTP_RATE            mails per second that this process sends at most, 1 to 10000; default 50
              POSTERN_MAIL_FROM            sender of mails (required)
              POSTERN_SECRETS_DIR          folder with the credentials of message providers, a file each, mode 0400 or \
            0600
              POSTERN_LISTEN               default 127.0.0.1:8080
              POSTERN_OPS_LISTEN           default 127.0.0.1:9090: /healthz, /readyz, /metrics
              POSTERN_TRUSTED_PROXIES      CIDR list whose X-Forwarded-For is read; default none
              POSTERN_TRUST_FORWARDED_HOST on: their X-Forwarded-Host chooses the realm; default off: Host does
              POSTERN_MAX_CONNECTIONS      of clients, in this process; default 10000
              POSTERN_KEEPALIVE            seconds an idle connection is kept; default 75, of trusted proxies 620
              POSTERN_LONG_POLLS           requests held at one time, in this process; default 10000
              POSTERN_TLS_CERT, _KEY       PEM files, read again when they change; normally a proxy ends TLS
              POSTERN_DB_CONNECTIONS       default 16
              POSTERN_LOG_LEVEL            default info
              POSTERN_LOG_FORMAT           text or json; default text
              POSTERN_OTLP_ENDPOINT        URL of an OpenTelemetry receiver; traces are posted below it; default none
              POSTERN_TRACE_RATIO          the share of requests that is traced, 0 to 1; default 0.01
              POSTERN_SHUTDOWN_DELAY       seconds that connections are accepted after SIGTERM; default 1
              POSTERN_SHUTDOWN_GRACE       seconds; default 10
              POSTERN_UNIFORM_DEADLINE_MS  when uniform answers leave; default 100
            """)

    @Option(name: .long, help: "A file with NAME=value lines; the environment wins.")
    var config: String?

    func run() async throws {
        let settings = try await Settings(file: config)
        let logger = Logger.postern(level: settings.logLevel, json: settings.logsJSON)
        LibraryOutput.log(to: logger)
        let faults = Faults()
        let given = (
            keyring: faults.value { try settings.keyring() }, sender: faults.value { try settings.mailSender() },
            smtp: faults.value { try settings.parsedSMTPURL() }, clusters: faults.value { try settings.databaseURLs() },
            secrets: faults.value { try settings.secretFiles() }
        )
        try faults.end()
        guard let keyring = given.keyring, let sender = given.sender, let parsedSMTPURL = given.smtp,
            let clusters = given.clusters, let secrets = given.secrets
        else { return }
        for name in settings.unknownNames { logger.warning("unknown setting: \(Settings.unknown(name))") }
        for warning in parsedSMTPURL.warnings + [parsedSMTPURL.greetingWarning()].compactMap(\.self) {
            logger.warning("POSTERN_SMTP_URL: \(warning)")
        }
        let transport = SMTPTransport(url: parsedSMTPURL)
        var use = KeyLineUse()
        for cluster in clusters {
            try await Preflight.check(conninfo: cluster.conninfo)
            if let warning = try await Preflight.collationWarning(conninfo: cluster.conninfo) {
                logger.warning("collation: \(warning)", metadata: ["cluster": "\(cluster.cluster)"])
            }
            use.add(try await Preflight.checkKeys(conninfo: cluster.conninfo, keyring: keyring))
        }
        KeyLines.log(use, keyring: keyring, to: logger)
        for fault in try await ClusterHosts.faults(in: clusters) { logger.error("host of two clusters: \(fault)") }
        try await ServerRun(
            configuration: settings.server, clusters: clusters, connections: settings.databaseConnections,
            keyring: keyring, mailSender: sender, transport: transport,
            secrets: secrets, extraRoutes: [], logger: logger,
            mailsPerSecond: settings.smtpRate
        ).run()
    }
}

/// Runs the server until SIGTERM or SIGINT, then drains.
struct ServerRun: Redacted {
    let configuration: ServerConfiguration
    let clusters: [(cluster: String, conninfo: String)]
    /// The role that statements run as, when the ones that log in may do more.
    var role: String?
    /// To each cluster.
    let connections: Int
    let keyring: Keyring
    let mailSender: Mailbox
    let transport: any MailTransport
    let secrets: SecretFiles
    /// Where messages stay under `postern dev`.
    var memory: (any MessageMemory)?
    let extraRoutes: [Route]
    /// What is at hosts that no realm has.
    var elsewhere = OtherHosts()
    let logger: Logger
    /// The most mails in any second; no bound if `nil`.
    var mailsPerSecond: Int?
    var onStarted: @Sendable () -> Void = {}

    func run() async throws {
        let metrics = Metrics()
        let tracer = configuration.traces.map { OTLPTracer(ratio: $0.ratio, metrics: metrics.registry) }
        let database = Database(
            members: clusters.map { cluster in
                var configuration = DatabaseConfiguration(conninfo: cluster.conninfo, connections: connections)
                configuration.role = role
                return .init(name: cluster.cluster, configuration: configuration)
            }, logger: logger, metrics: metrics.registry, tracer: tracer)
        var pace = OutboxSender.Configuration()
        // The mails of each cluster have a sender of their own.
        pace.mailsPerSecond = mailsPerSecond.map { max($0 / clusters.count, 1) }
        let eventCaller = HTTPCaller(sessions: EventSender.concurrency, isBackground: true)
        let server = try Server.build(
            configuration, database: database, keyring: keyring,
            parts: ServerParts(
                pages: HostedPages.init,
                delivery: { parts in
                    try OutboxSender(
                        database: parts.database, keyring: keyring, sender: mailSender, transport: transport,
                        calls: OutgoingCalls(
                            signer: RealmCallSigner(tokens: parts.hookTokens), secrets: secrets, outbox: memory),
                        wakes: parts.wakes, configuration: pace, logger: logger, tracer: tracer,
                        observe: parts.count)
                },
                postLogoutToken: Self.logoutTokenPost(), postEvent: Self.eventPost(eventCaller, secrets),
                eventExecutor: eventCaller.executor,
                postSignal: Self.signalPost(), routes: extraRoutes, elsewhere: elsewhere),
            metrics: metrics, tracer: tracer, onServing: { onStarted() }, logger: logger)
        // The first to start stops last: the spans of the others are exported.
        let exporter = tracer.map { SpanExporter($0, version: Version.number, post: spanPost()) }
        let services = [exporter].compactMap { $0 as (any Service)? } + server.services
        var groupConfiguration = ServiceGroupConfiguration(
            services: services.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        groupConfiguration.maximumGracefulShutdownDuration =
            configuration.shutdownDelay + configuration.shutdownGrace
        let group = ServiceGroup(configuration: groupConfiguration)
        for address in [configuration.listen, configuration.operationsListen].compactMap(\.self) {
            try await Self.listening(on: [address]) { try await address.checkIsFree() }
        }
        try await Self.listening(on: [configuration.listen, configuration.operationsListen].compactMap(\.self)) {
            try await group.run()
        }
        logger.notice("stopped")
    }

    /// Says in one line that the addresses cannot be listened on.
    static func listening(on addresses: [ListenAddress], _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as IOError {
            let reason = String(cString: strerror(error.errnoCode))
            let places = addresses.map(\.description).joined(separator: " and ")
            throw CommandFailure("cannot listen on \(places): \(reason)")
        }
    }

    /// Posts spans; no redirect is followed, and a batch that is not taken is not tried again.
    private func spanPost() -> SpanExporter.Post {
        let caller = HTTPCaller(sessions: 1)
        let url = (configuration.traces?.endpoint ?? "") + "/v1/traces"
        return { body in
            var call = HTTPCall(url: url, headers: [("Content-Type", "application/json")], body: body)
            call.total = .seconds(2)
            guard case .answered(let status, _, _, _) = await caller.post(call, before: .now + .seconds(3)) else {
                return false
            }
            return (200..<300).contains(status)
        }
    }

    /// Posts logout tokens, several at a time; no redirect is followed.
    private static func logoutTokenPost() -> LogoutTokens.Post {
        let caller = HTTPCaller()
        return { url, form in
            let call = HTTPCall(
                url: url, headers: [("Content-Type", "application/x-www-form-urlencoded")], body: form)
            switch await caller.post(call, before: .now + .seconds(6)) {
            case .answered(status: 200, _, _, _), .answered(status: 204, _, _, _): return nil
            case .answered(let status, _, _, _): return "HTTP \(status)"
            case .failed(let failure): return failure.description
            case .inDoubt: return "in doubt"
            }
        }
    }

    /// Asks operators about phone numbers; no redirect is followed, and a late or too long answer is dropped. A call
    /// has two seconds. Before that it waits two seconds at most until its realm has a free place.
    private static func signalPost() -> PossessionSignals.Post {
        let caller = HTTPCaller()
        return { realm, url, headers, body in
            var call = HTTPCall(url: url, headers: headers, body: body)
            call.total = .seconds(2)
            call.realm = realm
            guard
                case .answered(status: 200, let answer, isWhole: true, _) = await caller.post(
                    call, before: .now + .seconds(4))
            else { return nil }
            return answer
        }
    }

    /// Posts events; no redirect is followed. The credential is read for each call.
    private static func eventPost(_ caller: HTTPCaller, _ secrets: SecretFiles) -> EventSender.Post {
        { event, token in
            var headers = [("Content-Type", "application/secevent+jwt"), ("Accept", "application/json")]
            if let secretName = event.secretName {
                do {
                    headers.append(("Authorization", try await secrets.secret(secretName, of: event.realmSlug)))
                } catch {
                    return .failed("\(error)")
                }
            }
            var call = HTTPCall(url: event.url, headers: headers, body: token)
            call.total = .seconds(10)
            call.mayRepeat = true
            switch await caller.post(call, before: .now + call.total) {
            case .answered(let status, let body, _, let retryAfter):
                return .answered(status: status, body: body, retryAfter: retryAfter)
            case .failed(let failure): return .failed(failure.description)
            case .inDoubt: return .failed("no answer")
            }
        }
    }
}
