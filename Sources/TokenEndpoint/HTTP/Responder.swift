import Grants
import HTTPTypes
import Logging
import Synchronization
import Telemetry
import Tracing

/// Host to realm, exact path to route, method to handler: nothing is normalised, so no alias of a path exists.
/// Ordinary routers treat `//connect/token/` as `/connect/token`; see docs/decisions/0003.
///
/// An error that a handler throws becomes an answer here and is logged. An answer whose time must tell nothing waits
/// here.
public final class Responder: Sendable {
    private let routes: [String: Route]
    private let parameterRoutes: [Route]
    private let realms: RealmDirectory
    private let deadline: UniformDeadline
    private let refusals: RefusalLimit
    private let trustedProxies: [CIDR]
    private let trustsForwardedHost: Bool
    private let metrics: Metrics
    private let transport: TransportMetrics
    private let tracing: RequestTracing?
    private let logger: Logger
    private let unknownHosts: UnknownHosts
    private let elsewhere: OtherHosts
    private let lastNumber = Atomic<UInt64>(0)
    private let hasWarnedOfForwarder = Atomic<Bool>(false)

    /// Creates a responder.
    init(
        routes: [Route], realms: RealmDirectory, deadline: UniformDeadline, refusals: RefusalLimit,
        trustedProxies: [CIDR], trustsForwardedHost: Bool, metrics: Metrics,
        transport: TransportMetrics, tracing: RequestTracing? = nil,
        elsewhere: OtherHosts = OtherHosts(), logger: Logger
    ) {
        self.routes = Dictionary(uniqueKeysWithValues: routes.filter { !$0.hasParameter }.map { ($0.path, $0) })
        parameterRoutes = routes.filter(\.hasParameter)
        self.realms = realms
        self.deadline = deadline
        self.refusals = refusals
        self.trustedProxies = trustedProxies
        self.trustsForwardedHost = trustsForwardedHost
        self.metrics = metrics
        self.transport = transport
        self.tracing = tracing
        self.logger = logger
        unknownHosts = UnknownHosts(transport: transport, logger: logger)
        self.elsewhere = elsewhere
    }

    /// - Parameter address: the other end of the connection.
    func respond(to request: Request, from address: IPAddress?) async -> Answer {
        guard let path = request.path else { return Answer(.badRequest) }
        let (route, parameter) = find(path)
        let answer: Answer
        if let tracing {
            let isProxy = address.map { address in trustedProxies.contains { $0.contains(address) } } ?? false
            answer = await tracing.trace(request, route, isProxy: isProxy) { span in
                await self.answer(request, address, route: route, parameter: parameter, span)
            }
        } else {
            answer = await self.answer(request, address, route: route, parameter: parameter, nil)
        }
        metrics.count(
            route: route?.path ?? "other", status: answer.status.code, duration: request.arrivedAt.duration(to: .now))
        return answer
    }

    private func answer(
        _ request: Request, _ address: IPAddress?, route: Route?, parameter: String, _ span: RecordedSpan?
    ) async -> Answer {
        let peer = Peer(
            request, address: address, trusted: trustedProxies, trustsForwardedHost: trustsForwardedHost)
        if peer.isUntrustedForwarder { noteUntrustedForwarder(address) }
        let named = peer.forwardedHost ?? peer.authority ?? ""
        guard let host = HostName.canonical(named) else {
            unknownHosts.note(named)
            return await elsewhere.unknown(request)
        }
        let realm: Realm?
        do {
            realm = try await realms.realm(forHost: host)
            if peer.forwardedHost != nil, let own = peer.authority.flatMap({ HostName.canonical($0) }), own != host,
                let other = try await realms.realm(forHost: own), other.id != realm?.id
            {
                return Answer(.badRequest)
            }
        } catch {
            logger.warning("realm configuration is not available", metadata: ["error": "\(error)"])
            guard let route else { return .unavailable }
            let found = outage(request, peer, host, route, parameter, span) ?? route.unavailable
            // Which scheme the realm has is not known; over http browsers ignore it (RFC 6797 §8.1).
            return found.isPage ? found.withStrictTransportSecurity : found
        }
        guard let realm else {
            if let answer = await elsewhere.site(request, host) { return answer }
            unknownHosts.note(host)
            return await elsewhere.unknown(request)
        }
        guard let route else { return Answer(.notFound) }
        span?.attributes["postern.realm"] = realm.slug
        if let preflight = route.crossOrigin.preflight(request, route, realm) { return preflight }
        guard let endpoint = route.endpoint(for: request.method) else {
            return Answer(.methodNotAllowed, headers: [.allow: route.allow])
        }
        if let expectation = request.headers[.expect], expectation.lowercased() != "100-continue" {
            return Answer(.expectationFailed)
        }
        var exchange = exchange(request, realm, host, peer, parameter, span)
        if case .clients = route.crossOrigin, request.headers.has(.origin) { exchange.namedClient = NamedClient() }
        if realm.dpop.requiresNonce, request.headers.has(.dpop) { exchange.nextNonce = NextNonce() }
        var found = await run(endpoint, of: route, exchange).challenging(request)
        if let nextNonce = exchange.nextNonce { found = nextNonce.applied(to: found) }
        let answer = route.crossOrigin.applied(
            to: await refusals.counted(found, exchange), request, realm, exchange.namedClient)
        return realm.issuer.hasPrefix("https:") && answer.isPage ? answer.withStrictTransportSecurity : answer
    }

    private func exchange(
        _ request: Request, _ realm: Realm, _ host: String, _ peer: Peer, _ parameter: String, _ span: RecordedSpan?
    ) -> Exchange {
        Exchange(
            request: request, realm: realm, host: host, vary: peer.vary, pathParameter: parameter, source: peer.source,
            arrivedAt: request.arrivedAt, number: lastNumber.add(1, ordering: .relaxed).newValue,
            trace: span?.trace.trace, baseLogger: logger)
    }

    /// What a route answers of its own while the configuration cannot be read.
    private func outage(
        _ request: Request, _ peer: Peer, _ host: String, _ route: Route, _ parameter: String, _ span: RecordedSpan?
    ) -> Answer? {
        guard [.get, .head].contains(request.method), let realm = realms.remembered(forHost: host) else { return nil }
        if peer.forwardedHost != nil, let own = peer.authority.flatMap({ HostName.canonical($0) }), own != host,
            let other = realms.remembered(forHost: own), other.id != realm.id
        {
            return nil
        }
        return route.outage(exchange(request, realm, host, peer, parameter, span))
    }

    /// The endpoint's answer, or the one that goes with what it threw.
    private func run(_ endpoint: Endpoint, of route: Route, _ exchange: Exchange) async -> Answer {
        do {
            try route.requirement?.require(in: exchange.realm)
            let answer = try await endpoint.answer(exchange)
            if route.uniform == .accepted { await deadline.hold(exchange) }
            return answer
        } catch {
            let failed = ErrorAnswer(error, form: route.errors, basicUsed: exchange.usedAuthorization)
            if let line = failed.line, exchange.logs(line.level) {
                let metadata = line.metadata.merging(["realm": "\(exchange.realm.slug)"]) { $1 }
                exchange.logger.log(level: line.level, "\(route.logName)", metadata: metadata)
            }
            if route.uniform == .refusals, failed.isAboutAccount { await deadline.hold(exchange) }
            return failed.answer
        }
    }

    /// An address that is missing in `POSTERN_TRUSTED_PROXIES` makes all clients behind it one source: said once,
    /// counted always.
    private func noteUntrustedForwarder(_ address: IPAddress?) {
        transport.countUntrustedForwarded()
        guard !hasWarnedOfForwarder.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            "X-Forwarded-For from a peer that is not in POSTERN_TRUSTED_PROXIES is not read",
            metadata: ["address": "\(address.map(String.init(describing:)) ?? "unknown")"])
    }

    private func find(_ path: String) -> (Route?, parameter: String) {
        if let route = routes[path] { return (route, "") }
        for route in parameterRoutes where path.hasPrefix(route.path) {
            let parameter = path.dropFirst(route.path.count)
            if !parameter.isEmpty, !parameter.contains("/") { return (route, String(parameter)) }
        }
        return (nil, "")
    }
}

extension Answer {
    /// The first byte spares nearly every answer the search for its content type.
    fileprivate var isPage: Bool {
        body.first == UInt8(ascii: "<") && headers[values: .contentType].first?.hasPrefix("text/html") ?? false
    }

    /// Browsers come back by https only (RFC 6797).
    fileprivate var withStrictTransportSecurity: Answer {
        var answer = self
        answer.headers[.strictTransportSecurity] = "max-age=31536000"
        return answer
    }
}
