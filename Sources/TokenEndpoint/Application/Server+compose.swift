import Grants
import Logging
import Persistence
import ServiceLifecycle
import Telemetry

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
    /// Composes the capabilities: their grants, their endpoints, and what works beside requests. No other place knows
    /// all of them.
    ///
    /// - Throws: an error if a part cannot be made, as a page whose template is broken.
    static func compose(
        _ configuration: ServerConfiguration, database: Database, keyring: Keyring, parts: ServerParts,
        metrics: Metrics = Metrics(), tracer: OTLPTracer? = nil, logger: Logger
    ) throws -> Application {
        let shared = SharedParts(
            configuration, database: database, keyring: keyring, above: parts, metrics: metrics, logger: logger)
        let tokens = TokenModule(shared)
        let messages = MessageSignInModule(shared)
        let passkeys = PasskeyModule(shared)
        let approvals = ApprovalModule(shared)
        let possession = PossessionModule(shared)
        let authorization = AuthorizationModule(shared)
        let account = AccountModule(shared)
        // Services start in this order and stop in reverse: the senders of messages after the workers that queue them,
        // and before the database.
        let modules: [any Module] = [
            DeliveryModule(shared),
            MaintenanceModule(shared),
            tokens,
            messages,
            passkeys,
            DeviceModule(shared),
            approvals,
            possession,
            authorization,
            account,
            CotterModule(shared, authorization: authorization, approvals: approvals, tokens: tokens),
            EventModule(shared),
        ]
        let front = Front(
            service: TokenService(
                modules.flatMap(\.grants), clients: shared.clients, databaseClock: shared.databaseClock,
                proofs: shared.proofs),
            pages: try parts.pages(
                PageParts(shared, messages, passkeys, possession, authorization, account)))
        let responder = Responder(
            routes: modules.flatMap { $0.routes(front) } + parts.routes, realms: shared.realms,
            deadline: configuration.uniformDeadline, refusals: RefusalLimit(limiter: shared.limiter),
            trustedProxies: configuration.trustedProxies, trustsForwardedHost: configuration.trustsForwardedHost,
            metrics: metrics, transport: shared.transport, tracing: tracer.map(RequestTracing.init),
            elsewhere: parts.elsewhere, logger: logger)
        let services = try database.parts.flatMap { cluster in try modules.flatMap { try $0.services(in: cluster) } }
        return Application(
            responder: responder, realms: shared.realms, databaseClock: shared.databaseClock, metrics: metrics,
            transport: shared.transport, services: [database] + services + modules.flatMap(\.services))
    }
}
