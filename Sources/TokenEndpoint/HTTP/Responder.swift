public import Grants
public import HTTPTypes
public import Logging
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

/// Host to realm, exact path to route, method to handler: nothing is normalised, so no alias of a path exists (TE-39).
///
/// Stands in for Hummingbird's router, which treats `//connect/token/` as `/connect/token`; see docs/decisions/0003.
public final class Responder: Sendable {
    private let routes: [String: Route]
    private let parameterRoutes: [Route]
    private let realms: RealmDirectory
    private let trustedProxies: [CIDR]
    private let metrics: Metrics
    private let logger: Logger
    private let lastNumber = Atomic<UInt64>(0)

    /// Creates a responder.
    public init(
        routes: [Route], realms: RealmDirectory, trustedProxies: [CIDR], metrics: Metrics, logger: Logger
    ) {
        self.routes = Dictionary(uniqueKeysWithValues: routes.filter { !$0.hasParameter }.map { ($0.path, $0) })
        parameterRoutes = routes.filter(\.hasParameter)
        self.realms = realms
        self.trustedProxies = trustedProxies
        self.metrics = metrics
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
        let peer = Peer(request, address: address, trusted: trustedProxies)
        guard let host = peer.authority.flatMap({ HostName.canonical($0) }) else { return Answer(.notFound) }
        let realm: Realm?
        do {
            realm = try await realms.realm(forHost: host)
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
        return await handler(
            Exchange(
                request: request, realm: realm, host: host, pathParameter: parameter, source: peer.source,
                arrivedAt: request.arrivedAt, number: lastNumber.add(1, ordering: .relaxed).newValue,
                baseLogger: logger))
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
