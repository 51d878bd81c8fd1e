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
    /// When uniform answers leave.
    public var uniformDeadline: UniformDeadline
    /// PEM files, when TLS ends here.
    public var tls: (certificate: String, key: String)?
    /// How long requests in flight may take after SIGTERM.
    public var shutdownGrace: Duration

    /// A plain configuration on `listen`.
    public init(listen: ListenAddress, operationsListen: ListenAddress? = nil) {
        self.listen = listen
        self.operationsListen = operationsListen
        trustedProxies = []
        uniformDeadline = UniformDeadline(.milliseconds(100))
        shutdownGrace = .seconds(10)
    }
}

/// `host:port`, an IPv6 host in brackets.
public struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    /// Address or name.
    public let host: String
    /// 0 lets the system choose.
    public let port: Int

    /// An address.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses `host:port`; `nil` otherwise.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65535).contains(port)
        else { return nil }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            self.host = String(host.dropFirst().dropLast())
        } else {
            guard !host.contains(":") else { return nil }
            self.host = host.isEmpty ? "0.0.0.0" : String(host)
        }
        self.port = port
    }

    /// As written in the configuration.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
