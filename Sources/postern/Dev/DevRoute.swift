import HTTPTypes
import TokenEndpoint

extension Route {
    /// A route of `postern dev`. It is there on `localhost` and the hosts below it, which lead to this machine whatever
    /// a name server says, so that no page of elsewhere reads what it answers. It has no CORS, and takes nothing that a
    /// page of another site posts.
    static func dev(_ path: String, get: @escaping Handler, post: Handler? = nil) -> Route {
        Route(
            path,
            [
                .get: .anonymous { exchange in
                    guard DevHosts.isLocal(exchange.host) else { return Answer(.notFound) }
                    return try await get(exchange)
                },
                .post: .anonymous { exchange in
                    guard DevHosts.isLocal(exchange.host) else { return Answer(.notFound) }
                    guard exchange.isOfOwnPage else { return Answer(.forbidden) }
                    guard let post else { return Answer(.methodNotAllowed, headers: [.allow: "GET, HEAD"]) }
                    return try await post(exchange)
                },
            ])
    }
}

extension Answer {
    /// See there (RFC 9110 §15.4.4).
    static func seeOther(_ location: String) -> Answer { Answer(.seeOther, headers: [.location: location]) }
}

extension Exchange {
    /// Whether a page of another site cannot have sent it: a browser says so in `Sec-Fetch-Site` (Fetch Metadata §2.3),
    /// an old one in `Origin`, and other programs send neither.
    fileprivate var isOfOwnPage: Bool {
        let sites = request.headers[values: .secFetchSite]
        guard sites.isEmpty else { return sites == ["same-origin"] || sites == ["none"] }
        return request.headers[values: .origin].allSatisfy { $0 == "http://\(request.authority ?? "")" }
    }
}

// swift-format-ignore: NeverForceUnwrap
// Literals: a wrong one stops the first test.
extension HTTPField.Name {
    fileprivate static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
    fileprivate static let origin = HTTPField.Name("Origin")!
}
