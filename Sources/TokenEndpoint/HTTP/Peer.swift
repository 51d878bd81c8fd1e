import HTTPTypes

/// Who is calling and for which host: forwarded headers count only from configured proxies (design D8).
struct Peer: Sendable {
    /// The host asked for, not yet canonical.
    let authority: String?
    /// For limits and audit.
    let source: String

    /// - Parameters:
    ///   - address: the address at the other end of the connection.
    ///   - trusted: the proxies whose `X-Forwarded-*` headers are read.
    init(_ request: Request, address: IPAddress?, trusted: [CIDR]) {
        guard let address, trusted.contains(where: { $0.contains(address) }) else {
            authority = request.authority
            source = address?.limitKey ?? "unknown"
            return
        }
        authority = request.headers[values: .xForwardedHost].last ?? request.authority
        source = Self.origin(of: request, proxy: address, trusted: trusted).limitKey
    }

    /// The rightmost hop that is not a trusted proxy; what cannot be read counts as the hop that sent it.
    private static func origin(of request: Request, proxy: IPAddress, trusted: [CIDR]) -> IPAddress {
        var last = proxy
        let hops = request.headers[values: .xForwardedFor].joined(separator: ",").split(separator: ",").suffix(32)
        for hop in hops.reversed() {
            guard let address = IPAddress(hop.trimmingSpaces) else { return last }
            last = address
            if !trusted.contains(where: { $0.contains(address) }) { return address }
        }
        return last
    }
}
