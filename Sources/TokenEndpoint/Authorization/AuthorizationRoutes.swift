import Encoding
import Grants
import HTTPTypes
import NIOCore
import Persistence

/// `/connect/authorize` (RFC 6749 §3.1, OpenID Connect Core §3.1.2) and `/connect/par` (RFC 9126).
struct AuthorizationRoutes: Sendable {
    let authorizations: Authorizations
    let clients: ClientAuthenticator
    let proofs: Proofs
    let limit: LocalLimit
    let pages: any AuthorizationPages

    var routes: [Route] {
        [
            Route(
                "/connect/authorize",
                [.get: .page { try await authorize($0, by: request) }, .post: .page { try await redirect($0) }]
            ).logged(as: "authorize").unavailable(pages.unavailable).outage { silentAnswer($0) },
            Route("/connect/par", [.post: .client(clients, proofs) { try await push($0, $1) }]).logged(as: "par"),
        ]
    }

    /// Longer queries are not read, and longer requests are stored first.
    private static let maximumQuery = 8 * 1024

    private func request(_ form: FormParameters, _ exchange: Exchange) async throws -> AuthorizationRequest {
        try await authorizations.request(form, realm: exchange.realm)
    }

    /// Answers an authorization request.
    /// - Parameters:
    ///   - lists: parameters that may repeat; the first value counts.
    ///   - read: reads it from the query; throws `AuthorizationRefusal`.
    func authorize(
        _ exchange: Exchange, lists: Set<String> = [],
        by read: (FormParameters, Exchange) async throws -> AuthorizationRequest
    ) async throws -> Answer {
        let query = exchange.request.query.utf8
        guard query.count <= Self.maximumQuery else { return pages.refused(exchange, status: .uriTooLong) }
        return try await answering(exchange) {
            guard let form = try? FormParameters(parsing: query, lists: lists) else {
                throw AuthorizationRefusal.page(.invalidRequest)
            }
            let request = try await read(form, exchange)
            do {
                return try await answer(request, exchange)
            } catch
                where request.prompts.contains(.none) && TokenError(error).code == .temporarilyUnavailable
                && !(error is AuthorizationRefusal)
            {
                return response(request.temporarilyUnavailable, exchange)
            }
        }
    }

    /// While the configuration cannot be read: a request that wants no page gets its error at the redirect URI, if that
    /// was the client's before.
    private func silentAnswer(_ exchange: Exchange) -> Answer? {
        let query = exchange.request.query.utf8
        guard query.count <= Self.maximumQuery,
            limit.refusal(.authorize, exchange.source, realm: exchange.realm) == nil,
            let form = try? FormParameters(parsing: query),
            let request = authorizations.requestWithoutDatabase(form, realm: exchange.realm),
            request.prompts.contains(.none)
        else { return nil }
        return response(request.temporarilyUnavailable, exchange)
    }

    private func answer(_ request: AuthorizationRequest, _ exchange: Exchange) async throws -> Answer {
        let (answer, renewed) = try await authorizations.answer(
            request, cookie: exchange.sessionCookie, host: exchange.host, realm: exchange.realm)
        var found =
            switch answer {
            case .response(let found): response(found, exchange)
            case .page(let due, let session):
                try await pages.begin(request, due: due, session: session, exchange)
            }
        if let renewed { found.headers.append(HTTPField(name: .setCookie, value: exchange.header(for: renewed))) }
        return found
    }

    /// A cross-site POST comes without the browser's cookies; the GET after it brings them.
    private func redirect(_ exchange: Exchange) async throws -> Answer {
        try await answering(exchange) {
            let form: FormParameters
            do {
                form = try exchange.form()
            } catch let refusal as Refusal {
                return pages.refused(exchange, status: refusal.answer.status)
            }
            let query = String(decoding: exchange.request.body.readableBytesView, as: UTF8.self)
            var location = exchange.realm.origin(ofHost: exchange.host) + "/connect/authorize" + "?"
            if query.utf8.count <= Self.maximumQuery, Self.isQuery(query) {
                location += query
            } else {
                let request = try await authorizations.request(form, realm: exchange.realm)
                let uri = try await authorizations.store(request, realm: exchange.realm, source: exchange.source)
                location += "client_id=\(request.client.clientID)&request_uri=\(uri)"
            }
            return Answer(.seeOther, headers: [.location: location])
        }
    }

    /// Whether a form body can stand in a `Location` as it is.
    private static func isQuery(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }
    }

    /// Turns what may go wrong into pages and responses.
    private func answering(_ exchange: Exchange, _ body: () async throws -> Answer) async throws -> Answer {
        if let seconds = limit.refusal(.authorize, exchange.source, realm: exchange.realm) {
            return pages.tryAgain(after: seconds, isLimited: true, exchange)
        }
        do {
            return try await body()
        } catch let refusal as AuthorizationRefusal {
            switch refusal {
            case .page(let error): return pages.refused(error, exchange)
            case .response(let found): return response(found, exchange)
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            let error = TokenError(error)
            let page = pages.tryAgain(after: error.retryAfterSeconds, isLimited: error.limit != nil, exchange)
            throw Refusal(page, because: error)
        }
    }

    private func response(_ response: AuthorizationResponse, _ exchange: Exchange) -> Answer {
        switch response.mode {
        case .query: Answer(.seeOther, headers: [.location: response.url])
        case .formPost: pages.formPost(response, exchange)
        }
    }

    private func push(_ exchange: Exchange, _ caller: ProvingClient) async throws -> Answer {
        guard exchange.realm.hosted.isEnabled else {
            throw TokenError(.invalidRequest, "The realm has no sign-in pages.", reason: "hosted off")
        }
        try exchange.realm.requireAdmission(of: caller.client)
        guard caller.form["request_uri"] == nil else {
            throw TokenError(.invalidRequest, "The parameter request_uri cannot be pushed.", reason: "request_uri")
        }
        do {
            let uri = try await caller.acting(in: exchange) { proof in
                try await authorizations.push(
                    caller.form, by: caller.client, realm: exchange.realm, source: exchange.source, proof: proof)
            }
            var object = JSONWriter(reserving: 192)
            object.member("request_uri", uri)
            object.member("expires_in", Authorizations.pushedLifetime)
            return Answer(.created, json: object.finish())
        } catch let refusal as AuthorizationRefusal {
            throw Refusal(Self.pushed(refusal))
        }
    }

    /// RFC 9126 §2.3.
    private static func pushed(_ refusal: AuthorizationRefusal) -> Answer {
        var object = JSONWriter(reserving: 192)
        switch refusal {
        case .page(let error):
            object.member("error", error == .invalidClient ? error.rawValue : "invalid_request")
            object.member("error_description", "The redirect_uri is not one of the client's.")
        case .response(let response):
            object.member("error", response.error?.rawValue ?? "invalid_request")
            object.member("error_description", response.description)
        }
        return Answer(.badRequest, json: object.finish())
    }
}
