public import Persistence

/// One POST to an endpoint of an operator or a vendor.
public struct HTTPCall: Sendable {
    /// `https`, or `http` to this machine; any other is refused.
    public let url: String
    /// Names and values, besides those that HTTP needs.
    public let headers: [(name: String, value: String)]
    /// What is posted.
    public let body: [UInt8]
    /// For name resolution, TCP and TLS.
    public var connect = Duration.seconds(2)
    /// For everything.
    public var total = Duration.seconds(5)
    /// Whether the endpoint takes the same call twice, as receivers of events do: it is then made on a connection that
    /// an earlier one left open.
    public var mayRepeat = false
    /// The realm that the call is made for. One realm can have a quarter of the caller's calls under way. `nil`: the
    /// call belongs to no realm, and only the caller's maximum bounds it.
    public var realm: UUIDValue?

    /// A call with this body.
    public init(url: String, headers: [(name: String, value: String)], body: [UInt8]) {
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Of an answer no more is read.
    static let longestAnswer = 64 * 1024

    /// The scheme, if the URL may be called.
    var scheme: String? {
        if url.hasPrefix("https://") { return "https" }
        let loopback = ["http://localhost", "http://127.0.0.1", "http://[::1]"].contains { host in
            guard url.hasPrefix(host) else { return false }
            let rest = url.utf8.dropFirst(host.utf8.count)
            guard let next = rest.first else { return true }
            if next == UInt8(ascii: ":") {
                // A port and nothing else: the rest of a user name would end in "@".
                return !rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }.contains(UInt8(ascii: "@"))
            }
            return next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
        }
        return loopback ? "http" : nil
    }
}

/// What came of a call.
public enum HTTPAnswer: Sendable, Equatable {
    /// The endpoint answered. `body` is what was read of it, `isWhole` whether that is all.
    case answered(status: Int, body: [UInt8], isWhole: Bool, retryAfter: Duration?)
    /// The endpoint did not get the whole body, so it has done nothing.
    case failed(DeliveryFailure)
    /// The whole body was sent and the answer is missing.
    case inDoubt
}
