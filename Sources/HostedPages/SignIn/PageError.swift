import Grants
import HTTPTypes
import TokenEndpoint

/// Ends a request with an error page.
struct PageError: Error {
    let kind: ErrorPage.Kind
    let status: HTTPResponse.Status?

    init(_ kind: ErrorPage.Kind, status: HTTPResponse.Status? = nil) {
        self.kind = kind
        self.status = status
    }
}

extension SignInPages {
    /// The page of a server that does not know whose page it is: it cannot read the configuration now.
    var unavailable: Answer { ErrorPage(kind: .unavailable).answer(renderer, looks.neutral) }

    /// An error page. It leads back to the client that the request names, and repeats a GET that may go better later.
    func errorPage(_ kind: ErrorPage.Kind, _ exchange: Exchange, status: HTTPResponse.Status? = nil) -> Answer {
        var page = ErrorPage(kind: kind)
        let query = exchange.request.query
        if let form = try? FormParameters(parsing: query.utf8),
            let client = form["client_id"].flatMap({ exchange.realm.clients[$0] }), client.enabled,
            let home = client.hosted.homeURI
        {
            page.home = (home, client.displayName)
        }
        if kind == .rateLimited || kind == .unavailable, exchange.request.method == .get {
            page.retryURL = (exchange.request.path ?? "/") + (query.isEmpty ? "" : "?\(query)")
        }
        var answer = page.answer(renderer, looks.look(exchange.realm, exchange))
        if let status { answer.status = status }
        return answer
    }
}
