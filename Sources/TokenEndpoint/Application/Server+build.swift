import CoreMetrics
import Foundation
import Grants
package import Logging
package import Persistence
public import ServiceLifecycle
package import Telemetry

/// The composed application: what to run, in start order.
public struct Server: Sendable {
    /// Long-running parts; stopped in reverse order.
    public let services: [any Service]
}

extension Server {
    /// Composes the server: the application behind its listeners.
    ///
    /// - Parameters:
    ///   - parts: of modules above this one.
    ///   - onServing: called once clients can connect.
    /// - Throws: an error whose text says which TLS file cannot be used, or that of a part.
    package static func build(
        _ configuration: ServerConfiguration, database: Database, keyring: Keyring, parts: ServerParts,
        metrics: Metrics, tracer: OTLPTracer? = nil, onServing: @escaping @Sendable () -> Void, logger: Logger
    ) throws -> Server {
        let application = try compose(
            configuration, database: database, keyring: keyring, parts: parts, metrics: metrics, tracer: tracer,
            logger: logger)
        let (responder, transport) = (application.responder, application.transport)
        var services = application.services
        let tls = try configuration.tls.map {
            try TLSIdentity(certificate: $0.certificate, key: $0.key, logger: logger)
        }
        if let tls { services.append(tls) }
        let maximum = DescriptorLimit.connections(
            wanted: configuration.maximumConnections,
            databaseConnections: database.parts.reduce(0) { $0 + $1.configuration.connections })
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
                    trusted: configuration.trustedProxies, keepAlive: configuration.keepAlive,
                    metrics: transport, logger: logger),
                metrics: transport, tls: tls, stopsAfter: configuration.shutdownDelay, logger: logger,
                onServing: {
                    logger.notice("serving", metadata: ["listen": "\(configuration.listen)"])
                    onServing()
                },
                respond: { await responder.respond(to: $0, from: $1) }))
        if let listen = configuration.operationsListen {
            let queues = QueueGauges()
            metrics.watch { queues.gauges() }
            services.append(
                QueueWatch(
                    stores: database.parts.map { (QueueStore($0.database), WebhookStore($0.database)) },
                    gauges: queues, logger: logger))
            services.append(
                operations(
                    listen, metrics,
                    Readiness(
                        stores: database.parts.map { MaintenanceStore($0.database) }, realms: application.realms,
                        clock: application.databaseClock),
                    logger))
        }
        return Server(services: services)
    }

    /// The limit for an address that is not a trusted proxy.
    private static let connectionsPerSource = 256
    private static let operationsConnections = 32

    private static func operations(
        _ address: ListenAddress, _ metrics: Metrics, _ ready: Readiness, _ logger: Logger
    ) -> ConnectionServer {
        let responder = OperationsResponder(metrics: metrics, isReady: ready.reason)
        // Its connections are not counted among those of the clients.
        let uncounted = TransportMetrics(NOOPMetricsHandler.instance)
        let connections = OpenConnections(
            maximum: operationsConnections, maximumPerSource: operationsConnections, trusted: [], metrics: uncounted,
            logger: logger)
        return ConnectionServer(address: address, connections: connections, metrics: uncounted, logger: logger) {
            request, _ in await responder.respond(to: request)
        }
    }
}
