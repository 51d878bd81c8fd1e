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
