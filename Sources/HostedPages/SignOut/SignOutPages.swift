import Encoding
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
        let client = request.client.map { $0.key.bytes } ?? []
        let fields =
            browser.hash + bigEndianBytes(Int64(parts.clock()) + Int64(Self.lifetime)) + client
            + Array(look.identity.language.tag.utf8)
        guard
            let tx = try? parts.keyring.seal(
                fields, for: .signInTransaction, realm: exchange.realm.id, aad: Self.aad(exchange))
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
        guard let tx = form["tx"], tx.utf8.count <= 512, let sealed = Base64.urlDecode(tx),
            let fields = try? parts.keyring.open(
                sealed, for: .signInTransaction, realm: exchange.realm.id, aad: Self.aad(exchange)),
            fields.count >= 40
        else { return pages.errorPage(.invalidRequest, exchange) }
        guard Array(fields.prefix(32)) == browser else { return pages.errorPage(.foreignForm, exchange) }
        let expiresAt = fields[32..<40].bigEndianInteger(as: UInt64.self) ?? 0
        guard UInt64(max(0, parts.clock())) < expiresAt else { return try ask(SignOutRequest(), exchange) }
        // A client has 16 bytes, a language has fewer.
        let rest = fields[40...]
        let key = rest.count >= 16 ? UUIDValue(bytes: rest.prefix(16)) : nil
        let language = String(validating: key == nil ? rest : rest.dropFirst(16), as: UTF8.self) ?? ""
        let client = key.flatMap { key in exchange.realm.clients.values.first { $0.key == key } }
        switch form["action"].flatMap(SignInAction.init) {
        case .cancel: return done(client, exchange, isSignedOut: false, uiLocales: [language])
        case .continue:
            try await parts.signOut.confirm(
                SignOutRequest(), cookie: cookies.session, host: exchange.host, realm: exchange.realm,
                source: exchange.source)
            return done(client, exchange, isSignedOut: true, uiLocales: [language]).setting(
                exchange.endedSessionCookie)
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

    private static func aad(_ exchange: Exchange) -> [UInt8] {
        Array("sign-out".utf8) + exchange.realm.id.bytes + Array(exchange.host.utf8)
    }
}
