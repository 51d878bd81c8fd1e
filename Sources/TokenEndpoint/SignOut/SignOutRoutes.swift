import Grants
import HTTPTypes
import NIOCore

/// `/connect/logout` (OpenID Connect RP-Initiated Logout 1.0).
struct SignOutRoutes: Sendable {
    let signOut: SignOut
    let limit: LocalLimit
    let pages: any AuthorizationPages

    var routes: [Route] {
        [
            Route("/connect/logout", [.get: .page { try await begin($0) }, .post: .page { try await submit($0) }])
                .logged(as: "logout").unavailable(pages.unavailable)
        ]
    }

    private static let maximumQuery = 8 * 1024

    private func begin(_ exchange: Exchange) async throws -> Answer {
        let query = exchange.request.query.utf8
        guard query.count <= Self.maximumQuery else { return pages.refused(exchange, status: .uriTooLong) }
        if let seconds = limit.refusal(.authorize, exchange.source, realm: exchange.realm) {
            return pages.tryAgain(after: seconds, isLimited: true, exchange)
        }
        // A malformed request is taken for one without parameters: it asks.
        let request =
            (try? FormParameters(parsing: query)).map { SignOutRequest($0, realm: exchange.realm) }
            ?? SignOutRequest()
        return try await orTryAgain(exchange) {
            let outcome = try await signOut.begin(
                request, cookie: exchange.sessionCookie, host: exchange.host, realm: exchange.realm,
                source: exchange.source)
            switch outcome {
            case .ask: return try await pages.askToSignOut(request, exchange)
            case .redirect(let uri):
                return Answer(.seeOther, headers: [.location: uri, .setCookie: exchange.endedSessionCookie])
            case .signedOut:
                var answer = pages.signedOut(request, exchange)
                answer.headers[.setCookie] = exchange.endedSessionCookie
                return answer
            }
        }
    }

    /// Answers an error of the body with a page, because a browser shows the answer to a person.
    private func orTryAgain(_ exchange: Exchange, _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            throw Refusal(
                pages.tryAgain(after: 1, isLimited: false, exchange), because: TokenError(error))
        }
    }

    /// The page's form has a `tx`. Any other POST may come from another site, without the browser's cookies: the GET
    /// after it, of the same host, brings them.
    private func submit(_ exchange: Exchange) async throws -> Answer {
        let form = try exchange.form()
        guard form["tx"] == nil else {
            if let seconds = limit.refusal(.authorize, exchange.source, realm: exchange.realm) {
                return pages.tryAgain(after: seconds, isLimited: true, exchange)
            }
            return try await orTryAgain(exchange) { try await pages.confirmSignOut(form, exchange) }
        }
        let query = String(decoding: exchange.request.body.readableBytesView, as: UTF8.self)
        let fits =
            query.utf8.count <= Self.maximumQuery && query.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }
        // What cannot be repeated in a query is asked about.
        let location =
            exchange.realm.origin(ofHost: exchange.host) + "/connect/logout"
            + (fits && !query.isEmpty ? "?" + query : "")
        return Answer(.seeOther, headers: [.location: location])
    }
}
