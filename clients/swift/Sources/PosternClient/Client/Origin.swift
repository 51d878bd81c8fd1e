import Foundation

/// Scheme, host and port of a URL (RFC 6454).
struct Origin: Hashable {
    let scheme: String
    /// As it is sent: of a name with letters of other scripts, the form in ASCII (RFC 5891).
    let host: String
    let port: Int?
    /// Whether the URL has nothing else.
    let isOnlyOrigin: Bool

    /// `nil` unless it is `http` or `https` with a host.
    init?(_ url: URL) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let scheme = parts.scheme?.lowercased(), scheme == "https" || scheme == "http",
            // Decoded, `%2F` and its like would make another host of it.
            var host = parts.encodedHost?.lowercased(), !host.isEmpty, !host.contains("%")
        else { return nil }
        if host.hasSuffix(".") { host.removeLast() }
        self.scheme = scheme
        self.host = host
        port = parts.port == (scheme == "https" ? 443 : 80) ? nil : parts.port
        isOnlyOrigin =
            (parts.path.isEmpty || parts.path == "/") && parts.query == nil && parts.fragment == nil
            && parts.user == nil && parts.password == nil
    }

    /// Without a trailing slash.
    var text: String {
        let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        return "\(scheme)://\(name)" + (port.map { ":\($0)" } ?? "")
    }

    /// https, or a host that is this device (RFC 6761 §6.3, RFC 8252 §8.3).
    var isSecure: Bool {
        scheme == "https" || host == "localhost" || host.hasSuffix(".localhost") || host == "127.0.0.1"
            || host == "::1" || host == "[::1]"
    }

    static func == (one: Origin, other: Origin) -> Bool { one.text == other.text }
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
