/// The server's configuration, apart from the database.
public struct ServerConfiguration: Sendable {
    /// Where clients connect.
    public var listen: ListenAddress
    /// Where operators look; `nil` for none.
    public var operationsListen: ListenAddress?
    /// Proxies whose `X-Forwarded-For` is believed.
    public var trustedProxies: [CIDR]
    /// Whether their `X-Forwarded-Host` chooses the realm.
    public var trustsForwardedHost = false
    /// Open connections of clients.
    public var maximumConnections = 10_000
    /// How long their connections stay open without a request.
    public var keepAlive = KeepAlive()
    /// Requests of clients that may be held at one time, as set.
    public var maximumLongPolls = 10_000
    /// When uniform answers leave.
    public var uniformDeadline: UniformDeadline
    /// PEM files, when TLS ends here.
    public var tls: (certificate: String, key: String)?
    /// Where spans are posted, and the share of traces that is recorded, 0 to 1; `nil`: there are no traces.
    public var traces: (endpoint: String, ratio: Double)?
    /// How long connections are accepted after SIGTERM.
    public var shutdownDelay = Duration.zero
    /// How long requests in flight may take after that.
    public var shutdownGrace: Duration

    /// A tenth of the connections is left for requests that are answered at once.
    var longPolls: Int { min(maximumLongPolls, maximumConnections - max(maximumConnections / 10, 1)) }

    /// A plain configuration on `listen`.
    public init(listen: ListenAddress, operationsListen: ListenAddress? = nil) {
        self.listen = listen
        self.operationsListen = operationsListen
        trustedProxies = []
        uniformDeadline = UniformDeadline(.milliseconds(100))
        shutdownGrace = .seconds(10)
    }
}
