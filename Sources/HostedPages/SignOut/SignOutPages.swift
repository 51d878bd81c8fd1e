import Encoding
import Foundation
import Grants
import HTTPTypes
import Persistence
import Texts
import TokenEndpoint

/// The pages of `/connect/logout`: the question, and the answer.
struct SignOutPages: Sendable {
    let pages: SignInPages
    let parts: PageParts

    /// How long the question may stay open, in seconds.
    private static let lifetime = 3600

    /// Asks a user whose sign-out a stranger's link could have begun.
    func ask(_ request: SignOutRequest, _ exchange: Exchange) throws -> Answer {
        let cookies = BrowserCookies(exchange)
        let browser = cookies.named
        let look = pages.looks.look(exchange.realm, exchange, uiLocales: request.uiLocales)
        let question = Question(
            browser: browser.hash, expiresAt: Int64(parts.clock()) + Int64(Self.lifetime),
            client: (request.wayBack?.client ?? request.client)?.clientID, language: look.identity.language.tag,
            uri: request.wayBack?.uri, state: request.wayBack?.state)
        guard let fields = try? JSONEncoder().encode(question),
            let tx = try? parts.keyring.seal(
                Array(fields), for: .signInTransaction, realm: exchange.realm.id, aad: Self.aad(exchange))
        else { throw TokenError.unavailable("seal") }
        return pages.renderer.page(
            "sign-out", step: "sign-out", title: "sign-out-title", ["tx": .value(Base64.urlEncode(tx))], look: look
        ).setting(browser.header)
    }

    /// The answer to the question.
    func confirm(_ form: FormParameters, _ exchange: Exchange) async throws -> Answer {
        let cookies = BrowserCookies(exchange)
        guard exchange.isOwnForm else { return pages.errorPage(.foreignForm, exchange) }
        guard let browser = cookies.browser else { return pages.errorPage(.cookiesNeeded, exchange) }
        guard let tx = form["tx"], tx.utf8.count <= Self.maximumState, let sealed = Base64.urlDecode(tx),
            let fields = try? parts.keyring.open(
                sealed, for: .signInTransaction, realm: exchange.realm.id, aad: Self.aad(exchange)),
            let question = try? JSONDecoder().decode(Question.self, from: Data(fields))
        else { return pages.errorPage(.invalidRequest, exchange) }
        guard question.browser == browser else { return pages.errorPage(.foreignForm, exchange) }
        guard Int64(parts.clock()) < question.expiresAt else { return try ask(SignOutRequest(), exchange) }
        let client = question.client.flatMap { exchange.realm.clients[$0] }
        switch form["action"].flatMap(SignInAction.init(rawValue:)) {
        case .cancel: return done(client, exchange, isSignedOut: false, uiLocales: [question.language])
        case .continue:
            try await parts.signOut.confirm(
                cookie: cookies.session, host: exchange.host, realm: exchange.realm, source: exchange.source)
            let wayBack = client.flatMap { SignOutRequest.WayBack(question.uri, state: question.state, of: $0) }
            let answer =
                wayBack.map { .seeOther($0.url) }
                ?? done(client, exchange, isSignedOut: true, uiLocales: [question.language])
            return answer.setting(exchange.endedSessionCookie)
        default: return pages.errorPage(.invalidRequest, exchange)
        }
    }

    /// Says what was done, and offers the way back to the client.
    func done(_ client: Client?, _ exchange: Exchange, isSignedOut: Bool, uiLocales: [String]) -> Answer {
        let look = pages.looks.look(exchange.realm, exchange, uiLocales: uiLocales)
        let name = isSignedOut ? "signed-out" : "stay"
        var values: PageValues = ["text": .text("\(name)-lead")]
        values.set("home", value: client?.hosted.homeURI)
        return pages.renderer.page(
            "signed-out", step: isSignedOut ? "signed-out" : "sign-out", title: "\(name)-title", values,
            look: client.map { look.filling(["client": $0.displayName]) } ?? look)
    }

    /// What the form of the question holds, sealed for the browser that was asked.
    private struct Question: Codable {
        let browser: [UInt8]
        /// Seconds since the epoch.
        let expiresAt: Int64
        /// `client_id` of who asks.
        let client: String?
        /// A tag.
        let language: String
        /// Where the browser goes after a yes, if it is the client's then too.
        let uri: String?
        let state: String?
    }

    /// Longer than any question: a URI and a state with all that is sealed around them.
    private static let maximumState = 32 * 1024

    private static func aad(_ exchange: Exchange) -> [UInt8] {
        Array("sign-out".utf8) + exchange.realm.id.bytes + Array(exchange.host.utf8)
    }
}
