public import Grants
public import HTTPTypes
public import Hummingbird
import HummingbirdCore
import Logging
import NIOCore

/// What Hummingbird makes for each request; keeps the channel for the caller's address.
public struct ConnectionContext: RequestContext {
    /// Hummingbird's own storage.
    public var coreContext: CoreRequestContextStorage
    let remoteAddress: SocketAddress?

    /// Called by Hummingbird.
    public init(source: Source) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}

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
public struct Responder: HTTPResponder {
    /// Hummingbird's context.
    public typealias Context = ConnectionContext

    private let routes: [String: Route]
    private let parameterRoutes: [Route]
    private let realms: RealmDirectory
    private let trustedProxies: [CIDR]
    private let metrics: Metrics

    /// Creates a responder.
    public init(routes: [Route], realms: RealmDirectory, trustedProxies: [CIDR], metrics: Metrics) {
        self.routes = Dictionary(uniqueKeysWithValues: routes.filter { !$0.hasParameter }.map { ($0.path, $0) })
        parameterRoutes = routes.filter(\.hasParameter)
        self.realms = realms
        self.trustedProxies = trustedProxies
        self.metrics = metrics
    }

    /// Never throws: every failure is an answer.
    public func respond(to request: Request, context: ConnectionContext) async throws -> Response {
        let arrivedAt = ContinuousClock.now
        guard let path = RequestTarget.path(of: request.head) else {
            return Answer(.badRequest).response(to: request.method)
        }
        let (route, parameter) = find(path)
        let answer = await answer(
            request, context, route: route, parameter: parameter, arrivedAt: arrivedAt)
        metrics.count(
            route: route?.path ?? "other", status: answer.status.code,
            seconds: arrivedAt.duration(to: .now) / .seconds(1))
        return answer.response(to: request.method)
    }

    private func answer(
        _ request: Request, _ context: ConnectionContext, route: Route?, parameter: String,
        arrivedAt: ContinuousClock.Instant
    ) async -> Answer {
        let address = context.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        let peer = Peer(head: request.head, address: address, trusted: trustedProxies)
        guard let host = peer.authority.flatMap({ HostName.canonical($0) }) else { return Answer(.notFound) }
        let realm: Realm?
        do {
            realm = try await realms.realm(forHost: host)
        } catch {
            context.logger.warning("realm configuration is not available", metadata: ["error": "\(error)"])
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
                arrivedAt: arrivedAt,
                logger: context.logger))
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

/// The path of a request: nothing decoded, nothing normalised.
enum RequestTarget {
    /// `nil` for a request without a host, with two, or without a path; the answer is 400 (RFC 9112 §3.2).
    static func path(of head: HTTPRequest) -> String? {
        // A second Host header is left among the fields by the HTTP/1 codec.
        guard head.headerFields[values: .host].isEmpty, head.authority != nil, let target = head.path,
            target.hasPrefix("/")
        else {
            return nil
        }
        return String(target.prefix { $0 != "?" })
    }
}
