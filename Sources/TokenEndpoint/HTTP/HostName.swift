/// The host a request is for, in the canonical form that realms are looked up by: lower case, no port, no trailing dot.
package enum HostName {
    /// `nil` for anything that is not a bare DNS host with an optional port.
    package static func canonical(_ authority: some StringProtocol) -> String? {
        guard (1...260).contains(authority.utf8.count) else { return nil }
        var host = Array(authority.utf8)
        if let colon = host.firstIndex(of: UInt8(ascii: ":")) {
            let port = host[(colon + 1)...]
            guard port.count <= 5, port.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
                return nil
            }
            host.removeSubrange(colon...)
        }
        if host.last == UInt8(ascii: ".") { host.removeLast() }
        guard !host.isEmpty else { return nil }
        for index in host.indices {
            switch host[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): host[index] |= 0x20
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                break
            default: return nil
            }
        }
        return String(decoding: host, as: UTF8.self)
    }
}
