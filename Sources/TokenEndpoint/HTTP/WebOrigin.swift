/// The origin of a URL, as browsers write it.
enum WebOrigin {
    /// Lower case, without the port that the scheme implies (RFC 6454 §6.1).
    /// - Parameter url: an absolute URL with the scheme `http` or `https`.
    /// - Returns: `nil` for any other text, and for a URL with a user name.
    static func of(_ url: some StringProtocol) -> String? {
        guard let colon = url.firstIndex(of: ":") else { return nil }
        let scheme = url[..<colon].lowercased()
        let rest = url[colon...]
        guard scheme == "https" || scheme == "http", rest.hasPrefix("://") else { return nil }
        var authority = rest.dropFirst(3).prefix { $0 != "/" && $0 != "?" && $0 != "#" }.lowercased()
        guard !authority.contains("@"), !authority.contains("\\") else { return nil }
        for port in [":", scheme == "https" ? ":443" : ":80"] where authority.hasSuffix(port) {
            authority.removeLast(port.count)
            break
        }
        return authority.isEmpty ? nil : "\(scheme)://\(authority)"
    }
}
