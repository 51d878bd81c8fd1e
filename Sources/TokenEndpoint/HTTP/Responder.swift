import Grants
public import HTTPTypes
import Logging
import Synchronization

/// Answers a request for a known realm.
public typealias Handler = @Sendable (Exchange) async -> Answer

/// An endpoint: an exact path and its methods.
public struct Route: Sendable {
    let path: String
    let handlers: [HTTPRequest.Method: Handler]

    /// Whether one more path segment follows ``path``, which then ends in a slash.
    let hasParameter: Bool

    /// A route. `HEAD` follows `GET`.
    public init(_ path: String, _ handlers: [HTTPRequest.Method: Handler]) {
        self.path = path
        self.handlers = handlers
        hasParameter = false
    }

    /// A route whose last path segment is a parameter: `prefix` ends in a slash.
    public init(prefix: String, _ handlers: [HTTPRequest.Method: Handler]) {
        path = prefix
        self.handlers = handlers
        hasParameter = true
    }

    /// The route with other handlers.
    func mapHandlers(_ transform: (@escaping Handler) -> Handler) -> Route {
        Route(path: path, handlers: handlers.mapValues { transform($0) }, hasParameter: hasParameter)
    }

    private init(path: String, handlers: [HTTPRequest.Method: Handler], hasParameter: Bool) {
        self.path = path
        self.handlers = handlers
        self.hasParameter = hasParameter
    }

    func handler(for method: HTTPRequest.Method) -> Handler? {
        handlers[method == .head ? .get : method]
    }

    var allow: String {
        handlers.keys.flatMap { $0 == .get ? ["GET", "HEAD"] : [$0.rawValue] }.sorted().joined(separator: ", ")
    }
}

/// Maps host to realm, exact path to route, method to handler. Paths are not normalised, so no path has an alias.
///
/// Ordinary routers treat `//connect/token/` as `/connect/token`; see docs/decisions/0003.
public final class Responder: Sendable {
    private let routes: [String: Route]
    private let parameterRoutes: [Route]
    private let realms: RealmDirectory
    private let trustedProxies: [CIDR]
    private let trustsForwardedHost: Bool
    private let metrics: Metrics
    private let transport: TransportMetrics
    private let logger: Logger
    private let lastNumber = Atomic<UInt64>(0)
    private let hasWarnedOfForwarder = Atomic<Bool>(false)

    /// Creates a responder.
    init(
        routes: [Route], realms: RealmDirectory, trustedProxies: [CIDR], trustsForwardedHost: Bool, metrics: Metrics,
        transport: TransportMetrics, logger: Logger
    ) {
        self.routes = Dictionary(uniqueKeysWithValues: routes.filter { !$0.hasParameter }.map { ($0.path, $0) })
        parameterRoutes = routes.filter(\.hasParameter)
        self.realms = realms
        self.trustedProxies = trustedProxies
        self.trustsForwardedHost = trustsForwardedHost
        self.metrics = metrics
        self.transport = transport
        self.logger = logger
    }

    /// - Parameter address: the other end of the connection.
    func respond(to request: Request, from address: IPAddress?) async -> Answer {
        guard let path = request.path else { return Answer(.badRequest) }
        let (route, parameter) = find(path)
        let answer = await answer(request, address, route: route, parameter: parameter)
        metrics.count(
            route: route?.path ?? "other", status: answer.status.code,
            seconds: request.arrivedAt.duration(to: .now) / .seconds(1))
        return answer
    }

    private func answer(
        _ request: Request, _ address: IPAddress?, route: Route?, parameter: String
    ) async -> Answer {
        let peer = Peer(
            request, address: address, trusted: trustedProxies, trustsForwardedHost: trustsForwardedHost)
        if peer.isUntrustedForwarder { noteUntrustedForwarder(address) }
        guard let host = (peer.forwardedHost ?? peer.authority).flatMap({ HostName.canonical($0) }) else {
            return Answer(.notFound)
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
            return .unavailable
        }
        guard let realm, let route else { return Answer(.notFound) }
        guard let handler = route.handler(for: request.method) else {
            return Answer(.methodNotAllowed, headers: [.allow: route.allow])
        }
        if let expectation = request.headers[.expect], expectation.lowercased() != "100-continue" {
            return Answer(.expectationFailed)
        }
        let answer = await handler(
            Exchange(
                request: request, realm: realm, host: host, vary: peer.vary, pathParameter: parameter,
                source: peer.source,
                arrivedAt: request.arrivedAt, number: lastNumber.add(1, ordering: .relaxed).newValue,
                baseLogger: logger))
        return answer.isPage && realm.issuer.hasPrefix("https:") ? answer.withStrictTransportSecurity : answer
    }

    /// An address that is missing in `POSTERN_TRUSTED_PROXIES` makes all clients behind it one source: said once,
    /// counted always.
    private func noteUntrustedForwarder(_ address: IPAddress?) {
        transport.untrustedForwarded.add(1, ordering: .relaxed)
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
        body.first == UInt8(ascii: "<") && headers[.contentType]?.hasPrefix("text/html") ?? false
    }

    /// Browsers come back by https only (RFC 6797).
    fileprivate var withStrictTransportSecurity: Answer {
        var answer = self
        answer.headers[.strictTransportSecurity] = "max-age=31536000"
        return answer
    }
}
