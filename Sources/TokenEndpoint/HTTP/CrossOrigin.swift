import Grants
import HTTPTypes
import Synchronization

/// Which web origins may read the answers of a route (Fetch Standard §3.2, CORS).
package enum CrossOrigin: Sendable {
    case none
    /// Every origin: public documents.
    case all
    /// The web origins of the client that the request names; of any client of the realm while none is known.
    case clients
}

/// The client that a request names, noted by the check that finds it.
final class NamedClient: Sendable {
    private let origins = Mutex<[String]?>(nil)

    func note(_ client: Client) { origins.withLock { $0 = client.webOrigins } }

    /// Its web origins; `nil` while no client is known.
    var webOrigins: [String]? { origins.withLock { $0 } }
}

extension CrossOrigin {
    /// What our answers depend on, and what libraries of tracing add to every call (W3C Trace Context, Baggage).
    private static let requestHeaders =
        "Authorization, Content-Type, DPoP, Traceparent, Tracestate, Baggage, Sentry-Trace"

    private func admits(_ origin: String, _ realm: Realm, _ named: NamedClient?) -> Bool {
        switch self {
        case .none: false
        case .all: true
        case .clients:
            named?.webOrigins.map { Client.isRegistered(origin, among: $0) }
                ?? realm.clients.values.contains { Client.isRegistered(origin, among: $0.webOrigins) }
        }
    }

    /// The answer to a preflight; `nil` for any other request, and where no origin may read the answers. An origin
    /// that may not read them is told nothing, which its browser takes as no.
    func preflight(_ request: Request, _ route: Route, _ realm: Realm) -> Answer? {
        if case .none = self { return nil }
        guard request.method == .options, let origin = request.headers[.origin],
            request.headers.has(.accessControlRequestMethod)
        else { return nil }
        guard admits(origin, realm, nil) else { return Answer(.noContent, headers: [.vary: "Origin"]) }
        return Answer(
            .noContent,
            headers: [
                .accessControlAllowOrigin: origin, .accessControlAllowMethods: route.allow,
                .accessControlAllowHeaders: Self.requestHeaders, .accessControlMaxAge: "600",
                .vary: "Origin",
            ])
    }

    /// The answer with what a browser needs to hand it to the origin that asked.
    func applied(to answer: Answer, _ request: Request, _ realm: Realm, _ named: NamedClient?) -> Answer {
        if case .none = self { return answer }
        // A cache must not hand an answer without these headers to a page of another origin.
        guard let origin = request.headers[.origin], admits(origin, realm, named) else {
            return answer.headers.contains(.vary) ? answer.varyingByOrigin : answer
        }
        var answer = answer.varyingByOrigin
        answer.headers[.accessControlAllowOrigin] = origin
        answer.headers[.accessControlExposeHeaders] = "DPoP-Nonce, WWW-Authenticate, Retry-After"
        return answer
    }
}

extension Answer {
    fileprivate var varyingByOrigin: Answer {
        var answer = self
        answer.headers[.vary] = answer.headers[.vary].map { $0 + ", Origin" } ?? "Origin"
        return answer
    }
}

extension Exchange {
    /// Notes the client that the request names, for the origins that may read the answer.
    func nameClient(_ clientID: String?) {
        guard let namedClient, let clientID, let client = realm.clients[clientID] else { return }
        namedClient.note(client)
    }
}
