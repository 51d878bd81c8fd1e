/// Addresses of the web that browsers take for secure (Secure Contexts §3.1).
public enum SecureAddress {
    /// Whether what a browser sends to a URL cannot be read on the way: `https`, or `http` to a name of this machine,
    /// which are `localhost` and every host below it (RFC 6761 §6.3).
    /// - Parameter url: an origin or a URL without user name; scheme and host in lower case.
    public static func holds(_ url: String) -> Bool {
        if url.hasPrefix("https://") { return true }
        guard url.hasPrefix("http://") else { return false }
        let authority = url.utf8.dropFirst("http://".utf8.count).prefix { !"/?#".utf8.contains($0) }
        let host = authority.prefix { $0 != UInt8(ascii: ":") }
        let port = authority[host.endIndex...].dropFirst()
        let labels = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.last?.elementsEqual("localhost".utf8) == true && labels.allSatisfy(isLabel)
            && port.allSatisfy(isDigit)
    }

    private static func isLabel(_ label: Substring.UTF8View) -> Bool {
        let hyphen = UInt8(ascii: "-")
        return !label.isEmpty && label.first != hyphen && label.last != hyphen
            && label.allSatisfy { isDigit($0) || $0 == hyphen || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
