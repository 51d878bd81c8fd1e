public import HTTPTypes

/// A path, who may call each of its methods (``Endpoint``), and what holds for all of its answers.
public struct Route: Sendable {
    let path: String
    private let endpoints: [HTTPRequest.Method: Endpoint]
    /// Whether one more path segment follows ``path``, which then ends in a slash.
    let hasParameter: Bool
    /// Which answers leave at the fixed deadline.
    private(set) var uniform = UniformAnswers.none
    /// How errors read on the wire.
    private(set) var errors = ErrorForm.oauth
    /// Which web origins may read its answers.
    private(set) var crossOrigin = CrossOrigin.none
    /// The message of its errors in the log.
    private(set) var logName = "request"
    /// What it answers while the realm's configuration cannot be read.
    private(set) var unavailable = Answer.unavailable
    /// What it answers then to a GET instead, for a realm as it was before; `nil`: ``unavailable``.
    private(set) var outage: @Sendable (Exchange) -> Answer? = { _ in nil }
    /// What the realm must have switched on, so that the route exists there; it is looked at before the caller.
    private(set) var requirement: Requirement?

    /// Which answers of a route leave at the fixed deadline, so that their time tells nothing about an account.
    enum UniformAnswers: Sendable {
        case none
        /// Every answer that a handler returns.
        case accepted
        /// Refusals that depend on an account (``TokenError/isAboutAccount``).
        case refusals
    }

    /// A route. `HEAD` follows `GET`.
    public init(_ path: String, _ endpoints: [HTTPRequest.Method: Endpoint]) {
        self.path = path
        self.endpoints = endpoints
        hasParameter = false
    }

    /// A route whose last path segment is a parameter: `prefix` ends in a slash.
    public init(prefix: String, _ endpoints: [HTTPRequest.Method: Endpoint]) {
        path = prefix
        self.endpoints = endpoints
        hasParameter = true
    }

    /// The route with a fixed deadline for some of its answers.
    func uniform(_ answers: UniformAnswers) -> Route {
        var route = self
        route.uniform = answers
        return route
    }

    /// The route with errors in another form.
    func errors(_ form: ErrorForm) -> Route {
        var route = self
        route.errors = form
        return route
    }

    /// The route with answers that web origins may read.
    package func cors(_ origins: CrossOrigin) -> Route {
        var route = self
        route.crossOrigin = origins
        return route
    }

    /// The route with a name of its own for its errors in the log (docs/operate.md).
    package func logged(as name: String) -> Route {
        var route = self
        route.logName = name
        return route
    }

    /// The route with an answer of its own while the realm's configuration cannot be read: people get a page.
    package func unavailable(_ answer: Answer) -> Route {
        var route = self
        route.unavailable = answer
        return route
    }

    /// Lets the route answer some GETs from the last known realm while the configuration cannot be read.
    /// - Parameter answer: gets an exchange with that realm, and must grant nothing.
    func outage(_ answer: @escaping @Sendable (Exchange) -> Answer?) -> Route {
        var route = self
        route.outage = answer
        return route
    }

    /// The route of a part of the product that a realm may lack.
    func requiring(_ requirement: Requirement) -> Route {
        var route = self
        route.requirement = requirement
        return route
    }

    func endpoint(for method: HTTPRequest.Method) -> Endpoint? {
        endpoints[method == .head ? .get : method]
    }

    var allow: String {
        endpoints.keys.flatMap { $0 == .get ? ["GET", "HEAD"] : [$0.rawValue] }.sorted().joined(separator: ", ")
    }
}
