/// The URL of a request, under the names by which a proof may call it (`htu`, RFC 9449 §4.3 item 9): at the origin of
/// the host that was asked, or at the issuer's.
public struct RequestedURL: Sendable {
    private let realm: Realm
    private let host: String
    private let path: String

    /// - Parameters:
    ///   - realm: whose issuer counts.
    ///   - host: the canonical host that was asked.
    ///   - path: as asked, without the query.
    public init(realm: Realm, host: String, path: String) {
        self.realm = realm
        self.host = host
        self.path = path
    }

    /// Whether `htu` without query and fragment is one of the names, after normalisation.
    func isNamed(by htu: String) -> Bool {
        let atIssuer = realm.issuer + path
        if atIssuer.utf8.elementsEqual(htu.utf8) { return true }
        let names = [atIssuer, realm.origin(ofHost: host) + path]
        if names[1].utf8.elementsEqual(htu.utf8) { return true }
        guard let htu = HTTPURL.normalized(htu) else { return false }
        return names.contains { HTTPURL.normalized($0) == htu }
    }
}

/// URLs of scheme `http` and `https` (RFC 9110 §4.2).
enum HTTPURL {
    /// The URL without query and fragment, in the one spelling of RFC 3986 §6.2.2 and §6.2.3: scheme and host in lower
    /// case, no escape that is not needed, no dot segments, no default port, and `/` for an empty path.
    /// - Returns: `nil` if the text is not an absolute URL of these schemes. Names of hosts are not checked: the result
    ///   is compared with a URL that is right.
    static func normalized(_ text: String) -> [UInt8]? {
        let url = Array(text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard url.allSatisfy({ (0x21...0x7e).contains($0) }), let colon = url.firstIndex(of: UInt8(ascii: ":")) else {
            return nil
        }
        let scheme = lowercased(url[..<colon])
        let defaultPort: String
        switch String(decoding: scheme, as: UTF8.self) {
        case "https": defaultPort = "443"
        case "http": defaultPort = "80"
        default: return nil
        }
        let rest = url[(colon + 1)...]
        guard rest.starts(with: "//".utf8), let unescaped = escapesNormalized(rest.dropFirst(2)) else { return nil }
        let authority = unescaped.prefix { $0 != UInt8(ascii: "/") }
        guard let host = withoutDefaultPort(lowercased(authority), defaultPort) else { return nil }
        return scheme + "://".utf8 + host + withoutDotSegments(unescaped[authority.endIndex...])
    }

    /// `nil` for no host, and for user information.
    private static func withoutDefaultPort(_ authority: [UInt8], _ defaultPort: String) -> [UInt8]? {
        let port = authority.reversed().prefix { (0x30...0x39).contains($0) }.count
        let host = authority.dropLast(port)
        guard host.last == UInt8(ascii: ":") else { return isHost(authority[...]) ? authority : nil }
        guard isHost(host.dropLast()) else { return nil }
        let isDefault = port == 0 || authority.suffix(port) == Array(defaultPort.utf8)[...]
        return isDefault ? Array(host.dropLast()) : authority
    }

    private static func isHost(_ text: ArraySlice<UInt8>) -> Bool {
        // Colons are inside the brackets of an IPv6 address.
        let name = text.last == UInt8(ascii: "]") ? text.filter { $0 != UInt8(ascii: ":") }[...] : text
        return !name.isEmpty && !name.contains { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "@") }
    }

    private static func lowercased(_ text: some Sequence<UInt8>) -> [UInt8] {
        text.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }
    }

    /// RFC 3986 §6.2.2.2: unreserved characters stand for themselves, and other escapes are in upper case. `nil` for an
    /// invalid escape.
    private static func escapesNormalized(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(), let upper = hexadecimal(high),
                let lower = hexadecimal(low)
            else { return nil }
            let value = upper << 4 | lower
            if isUnreserved(value) {
                result.append(value)
            } else {
                result +=
                    [byte] + [upper, lower].map { $0 < 10 ? $0 + UInt8(ascii: "0") : $0 - 10 + UInt8(ascii: "A") }
            }
        }
        return result
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// RFC 3986 §2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// RFC 3986 §5.2.4 for the path behind an authority, which is empty or begins with a slash.
    private static func withoutDotSegments(_ path: ArraySlice<UInt8>) -> [UInt8] {
        var kept: [ArraySlice<UInt8>] = []
        var endsInDots = false
        for segment in path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
            endsInDots = true
            switch String(decoding: segment, as: UTF8.self) {
            case ".": break
            case "..": _ = kept.popLast()
            default:
                endsInDots = false
                kept.append(segment)
            }
        }
        if endsInDots { kept.append([]) }
        return kept.isEmpty ? [UInt8(ascii: "/")] : kept.flatMap { [UInt8(ascii: "/")] + $0 }
    }
}
