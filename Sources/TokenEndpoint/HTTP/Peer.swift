import HTTPTypes

/// The caller's address and the requested host. Forwarded headers are read only from configured proxies.
package struct Peer: Sendable {
    /// The value of `Host`, not yet canonical.
    let authority: String?
    /// The host that a trusted proxy names in `X-Forwarded-Host`, not yet canonical; `nil` when that header is not to
    /// be trusted.
    package let forwardedHost: String?
    /// For limits and audit.
    package let source: String
    /// A peer that is not a trusted proxy sent `X-Forwarded-For`.
    package let isUntrustedForwarder: Bool
    /// The request headers that the choice of the realm depends on.
    let vary: String

    /// - Parameters:
    ///   - address: the address at the other end of the connection.
    ///   - trusted: the proxies whose `X-Forwarded-For` is read.
    ///   - trustsForwardedHost: whether their `X-Forwarded-Host` is read, too.
    package init(_ request: Request, address: IPAddress?, trusted: [CIDR], trustsForwardedHost: Bool = false) {
        authority = request.authority
        guard let address, trusted.contains(where: { $0.contains(address) }) else {
            forwardedHost = nil
            source = address?.limitKey ?? "unknown"
            isUntrustedForwarder = request.headers.has(.xForwardedFor)
            vary = "Host"
            return
        }
        forwardedHost = trustsForwardedHost ? Self.forwardedHost(of: request) : nil
        source = Self.origin(of: request, proxy: address, trusted: trusted).limitKey
        isUntrustedForwarder = false
        vary = trustsForwardedHost ? "Host, X-Forwarded-Host" : "Host"
    }

    /// The last value of the last line: the one that the proxy next to us wrote.
    private static func forwardedHost(of request: Request) -> String? {
        guard let line = request.headers[values: .xForwardedHost].last else { return nil }
        let value = line.split(separator: ",", omittingEmptySubsequences: false).last ?? ""
        return String(value.trimmingSpaces)
    }

    /// The rightmost hop that is not a trusted proxy; a value that is not an address counts as the hop that sent
    /// it. Empty elements of a list mean nothing (RFC 9110 §5.6.1).
    private static func origin(of request: Request, proxy: IPAddress, trusted: [CIDR]) -> IPAddress {
        var last = proxy
        let hops = request.headers[values: .xForwardedFor].joined(separator: ",").split(separator: ",").suffix(32)
        for hop in hops.reversed() {
            if hop.allSatisfy({ $0 == " " || $0 == "\t" }) { continue }
            guard let address = IPAddress(ofProxy: hop) else { return last }
            last = address
            if !trusted.contains(where: { $0.contains(address) }) { return address }
        }
        return last
    }
}
