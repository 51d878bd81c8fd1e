public import HTTPTypes
public import NIOCore
package import NIOHTTP1

/// A request whose body has arrived, or has grown too large to be read.
public struct Request: Sendable {
    /// The method.
    public let method: HTTPRequest.Method
    /// `Host`; `nil` when there is none, or two.
    public let authority: String?
    /// The path as it came, nothing decoded, nothing normalised; `nil` for a request that is answered with 400 (RFC
    /// 9112 §3.2).
    public let path: String?
    /// The target as it came; for ``query`` alone, since a link's token is in it.
    private let target: String
    /// The header fields.
    public let headers: RequestHeaders
    /// The body; empty when it is too large.
    public let body: ByteBuffer
    /// Whether the body exceeds ``maximumBodyBytes``.
    public let isBodyTooLarge: Bool
    /// Whether the connection may be used again (RFC 9112 §9.3).
    let isKeepAlive: Bool
    /// When all of it had arrived: fixed deadlines count from here.
    let arrivedAt = ContinuousClock.now
    /// Ends the wait of a request that is held; `nil` for one without a connection.
    let end: ConnectionEnd?

    /// The largest body any endpoint reads.
    static let maximumBodyBytes = 64 * 1024

    package init(
        _ head: HTTPRequestHead, body: ByteBuffer = ByteBuffer(), isBodyTooLarge: Bool = false,
        end: ConnectionEnd? = nil
    ) {
        let fields = RequestHeaders(head.headers)
        let hosts = fields[values: .host]
        let method = HTTPRequest.Method(head.method)
        self.method = method ?? .options
        // A tab is refused even where a blank is allowed: what proxies make of it differs, and this names the realm.
        let hasTab = head.headers["host"].contains { $0.utf8.contains(UInt8(ascii: "\t")) }
        authority = hosts.count == 1 && !hasTab ? hosts.first : nil
        path = method == nil ? nil : authority.flatMap { Self.path(of: head.uri, host: $0) }
        target = head.uri
        headers = fields
        self.body = body
        self.isBodyTooLarge = isBodyTooLarge
        isKeepAlive = head.isKeepAlive
        self.end = end
    }

    /// What follows the `?` of the target, nothing decoded; empty without one.
    package var query: Substring {
        target[(target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex)...].dropFirst()
    }

    /// The path alone, without a check of the host, for the operators' listener: its callers may send no host.
    var operationsPath: String { Self.withoutQuery(target) }

    /// An absolute-form target must name the host of `Host`.
    private static func path(of target: String, host: String) -> String? {
        if target.utf8.first == UInt8(ascii: "/") { return withoutQuery(target) }
        guard let scheme = ["http://", "https://"].first(where: target.lowercased().hasPrefix) else { return nil }
        let rest = target.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard authority.lowercased() == host.lowercased() else { return nil }
        let path = withoutQuery(String(rest.dropFirst(authority.count)))
        return path.isEmpty ? "/" : path
    }

    private static func withoutQuery(_ target: String) -> String {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return target }
        return String(target[..<mark])
    }
}

/// Header fields of a request, looked up without regard to case.
public struct RequestHeaders: Sendable {
    private let fields: HTTPHeaders

    /// Blanks around a value do not belong to it (RFC 9112 §5.1). The parser leaves those behind it.
    init(_ fields: HTTPHeaders) {
        let isBlank = { (byte: UInt8?) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        self.fields =
            fields.contains { isBlank($0.value.utf8.last) }
            ? HTTPHeaders(fields.map { ($0.name, String($0.value.trimmingSpaces)) }) : fields
    }

    /// The value; several are joined by commas (RFC 9110 §5.3).
    public subscript(name: HTTPField.Name) -> String? {
        let values = fields[name.rawName]
        return values.count > 1 ? values.joined(separator: ", ") : values.first
    }

    /// Whether there is such a field.
    func has(_ name: HTTPField.Name) -> Bool { fields.contains(name: name.rawName) }

    /// Every value, in order.
    public subscript(values name: HTTPField.Name) -> [String] { fields[name.rawName] }
}

extension HTTPRequest.Method {
    /// `nil` if the method is not a token (RFC 9110 §5.6.2).
    init?(_ method: HTTPMethod) {
        switch method {
        case .GET: self = .get
        case .HEAD: self = .head
        case .POST: self = .post
        case .PATCH: self = .patch
        case .DELETE: self = .delete
        default: self.init(method.rawValue)
        }
    }
}
