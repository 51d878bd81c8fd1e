import Grants
import HTTPTypes
import Persistence
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
    var unavailable: Answer {
        var page = ErrorPage(kind: .unavailable)
        // The same address, by GET.
        page.retryURL = "?"
        return page.answer(renderer, looks.neutral)
    }

    /// An error page. It says what happened and leads back: to the client that the request or its `tx` names, to the
    /// same step, or to the same address.
    func errorPage(_ kind: ErrorPage.Kind, _ exchange: Exchange, status: HTTPResponse.Status? = nil) -> Answer {
        var page = ErrorPage(kind: kind)
        let isGET = exchange.request.method == .get
        let look = looks.look(exchange.realm, exchange)
        let form =
            (try? isGET ? FormParameters(parsing: exchange.request.query.utf8) : exchange.form()) ?? FormParameters()
        let transaction = form["tx"].flatMap {
            SignInTransaction($0, realm: exchange.realm, host: exchange.host, keyring: parts.keyring)
        }
        let client =
            form["client_id"].flatMap { exchange.realm.clients[$0] }
            ?? transaction.flatMap { purposes.client($0.purpose, in: exchange.realm) }
        if let client, client.enabled, let home = client.home { page.home = (home, client.displayName) }
        page.isElsewhere = isGET && transaction != nil && (kind == .cookiesNeeded || kind == .foreignForm)
        let path = exchange.request.path ?? "/"
        let again = transaction.flatMap { _ in form["tx"].map { "?tx=\($0)" } } ?? ""
        // A step of a sign-in is shown again with its `tx` alone.
        let canRepeat = isGET || path != "/sign-in" || transaction != nil
        if canRepeat, kind == .rateLimited || kind == .unavailable || page.home == nil {
            page.retryURL = isGET ? "" : path + again
        }
        if page.home == nil, page.retryURL == nil { page.support = look.brand.supportURI }
        var answer = page.answer(renderer, look)
        if let status { answer.status = status }
        return answer
    }
}

extension Client {
    /// Where its users begin: as registered, else the site that its users return to.
    fileprivate var home: String? {
        hosted.homeURI
            ?? hosted.redirectURIs.lazy.compactMap { uri in
                uri.prefixMatch(of: /https:\/\/[^\/?#]+/).map { String($0.0) + "/" }
            }.first
    }
}
